// SPDX-License-Identifier: Apache-2.0

// Package socket implements roced socket, which manages the service's sockets for containers. Each socket is
// a separate user.
package socket
