"""The small trees that balancing is explored on; thresholds are 40, 50 and 60, and a site takes up to 59."""

from __future__ import annotations

from weft.bodies.explorer.worlds.balancing_ground import Tree

PAIR, CHAIN, FORK, STAR, DEEP = "r a<r", "r m<r a<m", "r a<r b<r", "r m<r a<m b<m", "r m<r n<m a<n"

OFFER = Tree(PAIR, "s@a! x@a=50<s y@a=15<x z@r=42<y", ends=("x@a y@r z@r",), only="offer")
OFFER_TWICE = Tree(PAIR, "s@a! x@a=50<s y@a=15<x z@r=42<y", checks="a*2", only="offer")
FORGETS = Tree(PAIR, "s@a! x@a=50<s y@a=15<x z@r=42<y", "z=50", "r*2", only="offer")
DEMAND = Tree(PAIR, "s@a! x@a=50<s y@a=8<x z@r=30<y", ends=("x@a y@r z@r",), only="demand")
DEMAND_TWICE = Tree(PAIR, "s@a! x@a=50<s y@a=8<x z@r=30<y", checks="r*2")
MORE = Tree(PAIR, "s@a! x@a=50<s y@a=8<x w@a=8<s z@r=36<y,w", checks="a*0 r*2")
CROSS = Tree(
    PAIR, "s@a! x@a=50<s y@a=15<x z@r=50<y w@r=15<s", "x=30", "a*2 r*2", ends=("w@r x@a y@a z@r",), only="offer"
)
PASSING = Tree(
    PAIR,
    "s@a! p@a=50<s x@a=15<p y@r=15<x q@r=26! z@r=1<y",
    "z=24 p=28",
    "a*2",
    ends=("p@a x@r y@r z@r",),
    only="offer",
)
BOTH = Tree(PAIR, "s@a! x@a=50<s y@a=15<x z@r=20<y", ends=("x@a y@r z@r",))
STAYS = Tree(PAIR, "s@a! x@a=15<s y@a=50<x z@r=42<y", ends=("x@a y@a z@r",), only="offer")
EDGES = Tree(PAIR, "s@a! x@a=45<s y@a=15<x z@r=40<y", ends=("x@a y@a z@r",), only="nothing")
SNUG = Tree(PAIR, "s@a! x@a=3<s y@a=15<x q@a=47! z@r=40<y", ends=("x@a y@r z@r",), only="offer")
THREE = Tree(PAIR, "s@a! x@a=5<s w@a=5<x y@a=5<w q@a=50! z@r=42<y", ends=("w@r x@r y@r z@r",), only="offer")
SMALL = Tree(PAIR, "s@a! x@a=2<s w@a=2<x y@a=2<w q@a=56! z@r=42<y", ends=("w@r x@r y@r z@r",), only="offer")
PINNED = Tree(CHAIN, "s@a! p@a=42<s t@m! q@m=15! x@m=50<t z@r=42<x,p", ends=("p@a x@m z@r",), only="offer")
LOCAL = Tree(CHAIN, "s@a! p@a=42<s t@m! x@m=15<t,s y@m=50<x z@r=42<y", ends=("p@a x@m y@m z@r",), only="offer")
AGAIN = Tree(
    CHAIN, "s@a! p@a=61<s q@m=52! y@m=10<s w@m=11<s z@r=42<y,w", checks="m*2", ends=("p@a w@r y@m z@r",), only="offer"
)
TWO_OFFER = Tree(
    FORK,
    "s@a! t@b! x@a=50<s y@a=15<x u@b=50<t v@b=15<u z@r=42<y,v",
    ends=("u@b v@b x@a y@r z@r", "u@b v@r x@a y@a z@r"),
    only="offer",
)
TWO_FILL = Tree(
    FORK, "s@a! t@b! x@a=53<s y@a=8<x u@b=53<t v@b=8<u z@r=41<y,v", "z=45", "r*2", only="offer"
)  # either of two fits, not both
GIVES_WAY = Tree(FORK, "s@a! t@b! x@a=50<s y@a=15<x u@b=45<t z@r=20<y,u", ends=("u@b x@a y@r z@r",))
TWO_ASK = Tree(CHAIN, "s@a! p@a=30<s q@m=50! x@m=8<s z@r=30<x", ends=("p@a x@a z@r", "p@a x@r z@r"), only="demand")
TWO_LENT = Tree(
    CHAIN, "s@a! p@a=38<s q@m=48! x@m=10<s y@m=12<s z@r=38<x,y", checks="m*0", only="demand",
    ends=("p@a x@m y@a z@r", "p@a x@m y@r z@r"),
)  # fmt: skip
TWO_SMALL = Tree(
    CHAIN, "s@a! p@a=38<s q@m=52! x@m=8<s y@m=8<s z@r=38<x,y", checks="m*0", only="demand",
    ends=("p@a x@a y@r z@r", "p@a x@r y@a z@r"),
)  # fmt: skip
COMES_BACK = Tree(CHAIN, "s@a! p@a=53<s y@a=8<p q@m=50! x@m=8<y z@r=30<x", checks="m*0")
ENGAGED = Tree(FORK, "s@a! t@b! x@a=50<s y@a=15<x u@b=50<t v@b=12<u z@r=30<y,v", checks="a*0")
CHOOSE = Tree(CHAIN, "s@a! p@a=30<s q@m=50! x@m=15<s z@r=42<x", ends=("p@a x@a z@r",))
CHOOSE_UP = Tree(CHAIN, "s@a! p@a=42<s q@m=50! x@m=15<s z@r=30<x", ends=("p@a x@r z@r",))
PARTIAL = Tree(
    CHAIN, "s@a! p@a=38<s t@m! q@m=50! x@m=12<s w@m=4<t z@r=42<x,w", ends=("p@a w@r x@a z@r", "p@a w@m x@a z@r")
)
HEAVY = Tree(CHAIN, "s@a! p@a=30<s q@m=55! x@m=15<s w@m=12<s z@r=42<x,w", ends=("p@a w@a x@a z@r", "p@a w@r x@a z@r"))
URGENT = Tree(
    CHAIN, "s@a! p@a=55<s y@a=10<p w@m=36<y q@r=50! k@r=6<w l@r=4<w", checks="a*0 r*0", only="demand",
    ends=("k@r l@m p@a w@m y@m",),
)  # fmt: skip
UNCHOSEN = Tree(
    CHAIN, "s@a! p@a=55<s y@a=10<p w@m=36<y q@r=50! k@r=6<w", checks="a*0 r*0", only="demand",
    ends=("k@r p@a w@m y@m",),
)  # fmt: skip
DOWN = Tree(FORK, "s@a! t@b! x@a=41<s y@b=42<t j@r=20<x,y k@r=15<x q@r=30!", ends=("j@r k@a x@a y@b",), only="offer")
AROUND = Tree(
    STAR,
    "s@a! t@b! x@a=42<s y@b=42<t j@m=15<x k@m=12<y q@m=40! z@r=42<j,k",
    ends=("j@a k@m x@a y@b z@r",),
    only="offer",
)
TWO_GO = Tree(
    STAR, "s@a! t@b! x@a=42<s y@b=42<t j@m=10<x k@m=10<y q@m=50! z@r=42<j,k", checks="a*0 b*0 r*0",
    ends=("j@a k@b x@a y@b z@r",), only="offer",
)  # fmt: skip
LONG_WAY = Tree(
    DEEP,
    "s@a! p@a=42<s x@n=50<p y@n=15<x q@m=58! w@m=7<y z@r=42<w",
    ends=("p@a w@r x@n y@n z@r",),
    only="offer",
)
KINDS = Tree(
    PAIR,
    "s@a! x@a=30/50<s y@a=5/15<x u@a=25/2<s z@r=42/42<y,u",
    capacity=(100, 100),
    ends=("u@a x@a y@r z@r",),
    only="offer",
)
KINDS_EDGE = Tree(
    PAIR,
    "s@a! x@a=43/50<s y@a=12/15<x u@a=5/0<s z@r=42/42<y,u",
    capacity=(100, 100),
    ends=("u@a x@a y@r z@r",),
    only="offer",
)
KINDS_ASK = Tree(
    PAIR,
    "s@a! x@a=43/50<s y@a=12/8<x u@a=5/0<s z@r=30/30<y,u",
    capacity=(100, 100),
    ends=("u@r x@a y@a z@r",),
    only="demand",
)
KINDS_HALF = Tree(
    PAIR, "s@a! x@a=43/50<s y@a=2/8<x z@r=30/42<y", capacity=(100, 100), ends=("x@a y@a z@r",), only="nothing"
)
GROWS = Tree(
    CHAIN, "s@a! p@a=42<s q@m=50! x@m=9<s y@m=6<x z@r=42<y", "x=12 q=47", "m*2", ends=("p@a x@a y@a z@r",), only="offer"
)
BUSY = Tree(STAR, "s@a! t@b! x@a=50<s y@a=12<x u@b=30<t j@m=8<y k@m=8<u q@m=45! z@r=35<j,k")
ALL = {name.lower().replace("_", " "): case for name, case in list(globals().items()) if isinstance(case, Tree)}
