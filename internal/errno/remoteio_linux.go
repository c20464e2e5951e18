package errno

import "golang.org/x/sys/unix"

// RemoteIO is EREMOTEIO, which Linux alone has; EIO elsewhere.
const RemoteIO = unix.EREMOTEIO
