// SPDX-License-Identifier: Apache-2.0

// Package cdi implements roced cdi, which writes CDI specifications. With these, container engines pass a socket of the
// service and the C libraries to a container.
package cdi
