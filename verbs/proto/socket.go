package proto

// The commands about sockets of containers. Only for those who see all.
var (
	AddSocket    = command(12, "add_socket", visitSocket, visitSocket)
	RemoveSocket = command(13, "remove_socket", visitSocket, none)
)

// Socket is a socket for programs that counts as a user of its own. As a request it has no path.
type Socket struct {
	Name string
	Path string
}

func visitSocket(c *coder, s *Socket) {
	c.text("name", nameLen, &s.Name)
	c.text("path", pathLen, &s.Path)
}

// pathLen is the room for a socket's path, of which unix(7) has 108 bytes.
const pathLen = 112
