// SPDX-License-Identifier: Apache-2.0

package proto

// The commands on sockets of containers. They require access to all clients.
var (
	AddSocket    = command(12, "add_socket", visitSocket, visitSocket)
	RemoveSocket = command(13, "remove_socket", visitSocket, none)
)

// Socket is a socket for programs that count as one separate user. As a request it has no path.
type Socket struct {
	Name string
	Path string
}

func visitSocket(c *coder, s *Socket) {
	c.text("name", nameLen, &s.Name)
	c.text("path", pathLen, &s.Path)
}

// pathLen is the length of the field for a socket's path, which has at most 108 bytes (unix(7)).
const pathLen = 112
