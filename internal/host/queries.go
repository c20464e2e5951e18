package host

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/roced/roced/internal/errno"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Queries asks the kernel for the present state of one interface and of its routes and neighbours.
type Queries struct {
	index   int
	handle  *netlink.Handle
	sockets map[int]*nl.SocketHandle
}

// ErrNoInterface: the interface is not, or is no longer, in this network namespace.
var ErrNoInterface = errno.New("no such interface", unix.ENODEV)

// queryTimeout is far longer than an answer takes: the kernel answers inside the request.
const queryTimeout = 10 * time.Second

// OpenQueries opens sockets to ask about an interface in the calling thread's network namespace.
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

// prepare makes the kernel filter lists. A list of the addresses of one interface is then not
// interrupted by changes of other interfaces, as a list of all addresses is.
func (q *Queries) prepare(socket *nl.NetlinkSocket) error {
	timeout := unix.NsecToTimeval(queryTimeout.Nanoseconds())
	return errors.Join(
		unix.SetsockoptInt(socket.GetFd(), unix.SOL_NETLINK, unix.NETLINK_GET_STRICT_CHK, 1),
		socket.SetReceiveTimeout(&timeout), q.handle.SetSocketTimeout(queryTimeout),
	)
}

// Close closes the sockets.
func (q *Queries) Close() {
	q.handle.Close()
	q.sockets[unix.NETLINK_ROUTE].Socket.Close()
}

// Link is the state of an interface.
type Link struct {
	netlink.Link
	// Discipline is the name of the root queueing discipline (tc(8)); "noqueue" if there is none.
	Discipline string
}

// Link asks for the interface. It fails with ErrNoInterface if that has gone.
func (q *Queries) Link() (Link, error) {
	about := nl.NewIfInfomsg(unix.AF_UNSPEC)
	about.Index = int32(q.index)
	answers, err := q.ask(unix.RTM_GETLINK, 0, unix.RTM_NEWLINK, about)
	if errors.Is(err, unix.ENODEV) {
		return Link{}, ErrNoInterface
	}
	if err != nil {
		return Link{}, fmt.Errorf("ask for the interface: %w", err)
	}
	if len(answers) == 0 || len(answers[0]) < unix.SizeofIfInfomsg {
		return Link{}, fmt.Errorf("ask for the interface: %w: an empty answer", unix.EPROTO)
	}
	link, err := netlink.LinkDeserialize(nil, answers[0])
	discipline := attribute(answers[0][unix.SizeofIfInfomsg:], unix.IFLA_QDISC)
	return Link{link, strings.TrimRight(string(discipline), "\x00")}, err
}

// ask sends a request and returns the answers of one type.
func (q *Queries) ask(kind, flags int, answer uint16, data ...nl.NetlinkRequestData) ([][]byte, error) {
	request := nl.NewNetlinkRequest(kind, flags)
	request.Sockets = q.sockets
	for _, d := range data {
		request.AddData(d)
	}
	return request.Execute(unix.NETLINK_ROUTE, answer)
}

// listTries is how often a list is read if it changes while it is read.
const listTries = 5

// list asks for a list, and repeats that if the list changed while it was read, which the kernel
// reports.
func (q *Queries) list(kind int, answer uint16, data ...nl.NetlinkRequestData) (all [][]byte, err error) {
	for range listTries {
		if all, err = q.ask(kind, unix.NLM_F_DUMP, answer, data...); !errors.Is(err, nl.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}
