package daemon

import "github.com/roced/roced/verbs/proto"

// AddSocket has the service make the socket of a container, and gives its path.
func (c *Connection) AddSocket(name string) (path string, err error) {
	socket, err := ask(c, proto.AddSocket, proto.Socket{Name: name})
	return socket.Path, err
}

// RemoveSocket has the service end it.
func (c *Connection) RemoveSocket(name string) error {
	_, err := ask(c, proto.RemoveSocket, proto.Socket{Name: name})
	return err
}
