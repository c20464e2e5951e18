// SPDX-License-Identifier: Apache-2.0

// Package container defines the access of a container to roced: a folder with its socket, the C libraries, and the
// environment by which programs find both, as in "roced cdi generate".
package container
