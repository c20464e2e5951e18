// SPDX-License-Identifier: Apache-2.0

package vm

import "github.com/roced/roced/internal/tools"

// Requirements checks that this machine has the tools to build and run a virtual machine. The error names all missing
// ones and the packages to install.
func Requirements() error { return tools.Check("machines") }
