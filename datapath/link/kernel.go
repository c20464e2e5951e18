// SPDX-License-Identifier: Apache-2.0

package link

import "github.com/roced/roced/internal/kernel"

// KernelCutsTrains reports whether this kernel segments trains into packets: Linux 6.2 and later do. A distribution may
// have added the feature to an older kernel, which only sending a train would show. So the result is for a default; a
// caller that wants trains anyway tries, and checks TrainsUnable.
func KernelCutsTrains() bool { return cutsTrains(kernel.Release()) }

// cutsTrains is KernelCutsTrains for a release such as "6.1.0-56-amd64".
func cutsTrains(release string) bool { return kernel.Since(release, 6, 2) }
