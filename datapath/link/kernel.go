// SPDX-License-Identifier: Apache-2.0

package link

import "github.com/roced/roced/internal/kernel"

// KernelCutsTrains reports whether this kernel segments trains into packets, which Linux does since 6.2. It checks the
// release only: a distribution may have added the feature to an older kernel, which cannot be detected without sending
// a train. The result is therefore suitable as a default. A caller can also enable trains on an older kernel, and check
// TrainsUnable.
func KernelCutsTrains() bool { return cutsTrains(kernel.Release()) }

// cutsTrains is KernelCutsTrains for a release such as "6.1.0-56-amd64".
func cutsTrains(release string) bool { return kernel.Since(release, 6, 2) }
