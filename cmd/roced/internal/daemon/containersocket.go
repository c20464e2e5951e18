// SPDX-License-Identifier: Apache-2.0

package daemon

import "github.com/roced/roced/verbs/proto"

// AddSocket creates the socket of a container and returns its path.
func (c *Connection) AddSocket(name string) (path string, err error) {
	socket, err := call(c, proto.AddSocket, proto.Socket{Name: name})
	return socket.Path, err
}

// RemoveSocket removes the socket of a container.
func (c *Connection) RemoveSocket(name string) error {
	_, err := call(c, proto.RemoveSocket, proto.Socket{Name: name})
	return err
}
