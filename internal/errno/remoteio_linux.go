// SPDX-License-Identifier: Apache-2.0

package errno

import "golang.org/x/sys/unix"

// RemoteIO is EREMOTEIO, which only Linux has, and EIO elsewhere.
const RemoteIO = unix.EREMOTEIO
