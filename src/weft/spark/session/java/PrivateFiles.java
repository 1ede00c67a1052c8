package weft;

import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Local files without a process for each: what is to be its user's alone is so from the start, by the umask. */
public class PrivateFiles extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws java.io.IOException {
        if ((permission.toShort() & 077) != 0) {
            super.setPermission(path, permission);
        }
    }
}
