"""How are delays fed back live? Each site tells what it measured to all sites of a query, and knows its own slack."""
