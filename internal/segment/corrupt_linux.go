package segment

import "syscall"

// corrupt is what a file system says of one that it finds damaged.
var corrupt = []error{syscall.EUCLEAN, syscall.EBADMSG}
