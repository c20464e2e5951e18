// SPDX-License-Identifier: Apache-2.0

package vm

import "github.com/roced/roced/internal/tools"

// Requirements checks at once that this machine has the tools that make and run a virtual machine. The error names all
// missing ones, and what to install.
func Requirements() error { return tools.Check("machines") }
