package link

import "github.com/roced/roced/internal/kernel"

// KernelCutsTrains reports whether this kernel makes packets of trains: Linux 6.2 and later do. A
// distribution may have added it to an older kernel; only sending a train would show that. So the
// answer is for a default. A caller that wants trains anyway tries, and learns from TrainsUnable.
func KernelCutsTrains() bool { return cutsTrains(kernel.Release()) }

// cutsTrains is KernelCutsTrains for a release such as "6.1.0-56-amd64".
func cutsTrains(release string) bool { return kernel.Since(release, 6, 2) }
