package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/internal/errno"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Queries asks the kernel how one interface and its surroundings are now.
type Queries struct {
	index   int
	handle  *netlink.Handle
	sockets map[int]*nl.SocketHandle
}

// ErrNoInterface: the interface is not in this network namespace (any more).
var ErrNoInterface = errno.New("no such interface", unix.ENODEV)

// queryTimeout is far longer than the kernel takes, which answers while it is asked.
const queryTimeout = 10 * time.Second

// OpenQueries gets ready to ask about an interface of the calling thread's network namespace.
func OpenQueries(index int) (*Queries, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		handle.Close()
		return nil, fmt.Errorf("netlink: %w", err)
	}
	q := &Queries{index: index, handle: handle, sockets: map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: socket}}}
	if err := q.prepare(socket); err != nil {
		q.Close()
		return nil, fmt.Errorf("netlink: %w", err)
	}
	return q, nil
}

// prepare has lists filtered by the kernel: a list of one interface's addresses is not
// interrupted by what happens to others, which a list of all is.
func (q *Queries) prepare(socket *nl.NetlinkSocket) error {
	timeout := unix.NsecToTimeval(queryTimeout.Nanoseconds())
	return errors.Join(
		unix.SetsockoptInt(socket.GetFd(), unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1),
		socket.SetReceiveTimeout(&timeout), q.handle.SetSocketTimeout(queryTimeout),
	)
}

// Close ends it.
func (q *Queries) Close() {
	q.handle.Close()
	q.sockets[unix.NETLINK_ROUTE].Socket.Close()
}

// Link is the interface; ErrNoInterface.
func (q *Queries) Link() (netlink.Link, error) {
	link, err := q.handle.LinkByIndex(q.index)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil, ErrNoInterface
	}
	return link, err
}

// ask makes a request, and gives the answers of one type.
func (q *Queries) ask(kind, flags int, answer uint16, data ...nl.NetlinkRequestData) ([][]byte, error) {
	request := nl.NewNetlinkRequest(kind, flags)
	request.Sockets = q.sockets
	for _, d := range data {
		request.AddData(d)
	}
	return request.Execute(unix.NETLINK_ROUTE, answer)
}

// listTries is how often a list is read that the kernel changed meanwhile.
const listTries = 5

// list is ask for a list of one piece: the kernel says when it changed on the way.
func (q *Queries) list(kind int, answer uint16, data ...nl.NetlinkRequestData) (all [][]byte, err error) {
	for range listTries {
		if all, err = q.ask(kind, unix.NLM_F_DUMP, answer, data...); !errors.Is(err, nl.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}
