// SPDX-License-Identifier: Apache-2.0

// Command tools checks that this machine has all tools for a purpose, such as a make target:
//
//	go run ./hack/tools package            nothing, or all missing tools and the command that installs them
//	go run ./hack/tools -packages tests    the Debian packages
//	go run ./hack/tools                    each purpose with its command, as in CONTRIBUTING.md
package main
