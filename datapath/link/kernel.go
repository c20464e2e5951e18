package link

import (
	"bytes"
	"fmt"

	"golang.org/x/sys/unix"
)

// KernelCutsTrains reports whether this kernel makes packets of trains: Linux 6.2 and later do. A
// distribution may have added it to an older kernel; only sending a train would show that. So the
// answer is for a default. A caller that wants trains anyway tries, and learns from TrainsUnable.
func KernelCutsTrains() bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	release, _, _ := bytes.Cut(name.Release[:], []byte{0})
	return cutsTrains(string(release))
}

// cutsTrains is KernelCutsTrains for a release such as "6.1.0-56-amd64".
func cutsTrains(release string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor)
	return n == 2 && (major > 6 || major == 6 && minor >= 2)
}
