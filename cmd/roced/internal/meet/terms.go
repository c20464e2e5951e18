package meet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Terms are what two roced programs must agree on. They exchange them before anything else, so that a difference is an error
// at once on both sides. The other end may also be a program of rdma-core or of perftest, which exchanges none. So the
// client's first message is that of such a program, with a mark where these read nothing:
//
//	client                             server
//	first message, marked       ──►    (another program goes on as it does)
//	                            ◄──    "roced ", its terms as JSON, newline
//	"roced ", its terms, newline ──►
//
// and then as without them. A server that sees no mark, and a client that is answered otherwise, goes on without.
type Terms struct {
	Program  string    `json:"program"`         // perf or ping; empty: terms are not exchanged
	Settings []Setting `json:"settings"`        // that both sides need
	Payload  int       `json:"payload"`         // bytes of the longest packet's payload; 0: as the smaller MTU allows
	Longest  string    `json:"-"`               // flag that sets Payload
	MTU      int       `json:"rdma_mtu"`        // RDMA MTU of this side's port, bytes
	Count    int       `json:"count,omitempty"` // of messages; the two sides' may differ

	peerCount int // 0 until the exchange, and of a peer without one
}

// Setting is a flag, with its value if it has one.
type Setting struct {
	Flag  string `json:"flag"`
	Value string `json:"value,omitempty"`
}

const (
	termsPrefix = "roced "
	maxTerms    = 4096 // bytes of a line of terms
)

// Flag adds a setting without a value, if it is on.
func (t *Terms) Flag(flag string, on bool) *Terms {
	if on {
		t.Settings = append(t.Settings, Setting{Flag: flag})
	}
	return t
}

// Value adds a setting with a value.
func (t *Terms) Value(flag string, value any) *Terms {
	t.Settings = append(t.Settings, Setting{flag, fmt.Sprint(value)})
	return t
}

// Command is the command line that has these settings.
func (t *Terms) Command() string {
	text := "roced " + t.Program
	for _, s := range t.Settings {
		text += " " + strings.TrimSpace(s.Flag+" "+s.Value)
	}
	return text
}

// Offer is the client's half, after its first message. It returns the connection to go on with: what a peer without terms has
// said is not lost.
func (t *Terms) Offer(conn io.ReadWriter) (io.ReadWriter, error) {
	if t.Program == "" {
		return conn, nil
	}
	begin := make([]byte, len(termsPrefix))
	n, err := io.ReadFull(conn, begin)
	if string(begin[:n]) != termsPrefix {
		return &continued{conn, begin[:n]}, ignoreEnd(err)
	}
	peer, err := readTerms(conn)
	if err == nil {
		err = t.send(conn)
	}
	if err == nil {
		err = t.compare(&peer)
	}
	return conn, err
}

// accept is the server's half, after a first message with a mark.
func (t *Terms) accept(conn io.ReadWriter) error {
	if err := t.send(conn); err != nil {
		return err
	}
	begin := make([]byte, len(termsPrefix))
	if _, err := io.ReadFull(conn, begin); err != nil {
		return fmt.Errorf("read the peer's settings: %w", err)
	}
	peer, err := readTerms(conn)
	if err != nil {
		return err
	}
	return t.compare(&peer)
}

func (t *Terms) send(conn io.Writer) error {
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "%s%s\n", termsPrefix, line); err != nil {
		return fmt.Errorf("send own settings: %w", err)
	}
	return nil
}

// readTerms reads the line behind its prefix, and nothing more.
func readTerms(conn io.Reader) (t Terms, err error) {
	var line []byte
	for one := []byte{0}; one[0] != '\n'; line = append(line, one[0]) {
		if _, err := io.ReadFull(conn, one); err != nil {
			return t, fmt.Errorf("read the peer's settings: %w", err)
		}
		if len(line) == maxTerms {
			return t, fmt.Errorf("the peer's settings are longer than %d bytes: %w", maxTerms, unix.EBADMSG)
		}
	}
	if err := json.Unmarshal(line, &t); err != nil || t.Program == "" {
		return t, fmt.Errorf("the peer's settings are %s: %w", Printable(string(line)), unix.EBADMSG)
	}
	return t, nil
}

// compare fails if the peer's terms do not suit.
func (t *Terms) compare(peer *Terms) error {
	t.peerCount = peer.Count
	remedy := t.remedy(peer)
	switch {
	case remedy != "":
		return fmt.Errorf("the peer runs %s, and this side %s: %s: %w", Printable(peer.Command()), t.Command(), remedy, unix.EPROTO)
	case t.Payload > peer.MTU:
		return t.tooLong(t.Payload, peer.MTU, "the peer's", "there")
	case peer.Payload > t.MTU:
		return t.tooLong(peer.Payload, t.MTU, "this side's", "here")
	}
	return nil
}

// ExplainCount adds to an error that the two sides have different counts, if they have: one side then waits for messages that
// the other does not send.
func (t *Terms) ExplainCount(err error) error {
	if err == nil || t.peerCount <= 0 || t.peerCount == t.Count {
		return err
	}
	return fmt.Errorf("%w; the peer has --count %d, and this side --count %d: give both the same", err, t.peerCount, t.Count)
}

func (t *Terms) tooLong(payload, mtu int, whose, where string) error {
	return fmt.Errorf("packets of %d bytes do not fit %s RDMA MTU, %d: give both sides %s %[3]d at most, or raise the interface's MTU %[5]s: %[6]w", payload, whose, mtu, t.Longest, where, unix.EMSGSIZE)
}

// remedy says which flags have to be given where; empty if the settings agree.
func (t *Terms) remedy(peer *Terms) string {
	if t.Program != peer.Program {
		return fmt.Sprintf("start %s there, or %s here", t.Command(), Printable(peer.Command()))
	}
	var here, there, differ []string
	for _, s := range peer.Settings {
		if i := slices.IndexFunc(t.Settings, func(own Setting) bool { return own.Flag == s.Flag }); i < 0 {
			here = append(here, strings.TrimSpace(s.Flag+" "+s.Value))
		} else if t.Settings[i].Value != s.Value {
			differ = append(differ, s.Flag)
		}
	}
	for _, s := range t.Settings {
		if !slices.ContainsFunc(peer.Settings, func(other Setting) bool { return other.Flag == s.Flag }) {
			there = append(there, strings.TrimSpace(s.Flag+" "+s.Value))
		}
	}
	var parts []string
	for _, part := range []struct {
		flags []string
		text  string
	}{{here, "add %s here, or leave it out there"}, {there, "add %s there, or leave it out here"}, {differ, "give both sides the same %s"}} {
		if len(part.flags) > 0 {
			parts = append(parts, fmt.Sprintf(part.text, Printable(strings.Join(part.flags, " "))))
		}
	}
	return strings.Join(parts, "; ")
}

// continued is a connection of which something has been read already.
type continued struct {
	io.ReadWriter
	read []byte
}

func (c *continued) Read(p []byte) (int, error) {
	if len(c.read) == 0 {
		return c.ReadWriter.Read(p)
	}
	n := copy(p, c.read)
	c.read = c.read[n:]
	return n, nil
}

// ignoreEnd drops the error of a connection that has ended: who reads on gets it again.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// First is what a client says first.
type First int

// The kinds of first messages.
const (
	Unknown  First = iota
	Pingpong       // ibv_*_pingpong's
	Perftest       // perftest's
)

// Marks of roced clients. Both kinds of programs read past them: rdma-core's take the LID with sscanf's %x, perftest's a
// version up to its NUL.
const (
	oneMark      = "0x00" // the LID of one address
	srqMark      = "0X00" // that of the first of SRQAddresses
	perftestMark = "\x00roced"
	versionLen   = 16 // of perftest's first message
)

// markAddresses marks the first message of a pingpong client.
func (t *Terms) markAddresses(message []byte, addresses int) {
	mark := oneMark
	if addresses == SRQAddresses {
		mark = srqMark
	}
	if t.Program != "" {
		copy(message, mark)
	}
}

// marked is the number of addresses that a marked first message of a pingpong client has; 0 without a mark.
func marked(begin []byte) int {
	switch string(begin[:len(oneMark)]) {
	case oneMark:
		return 1
	case srqMark:
		return SRQAddresses
	}
	return 0
}

// Version is perftest's first message of a version, marked if terms are exchanged.
func (t *Terms) Version(version string) []byte {
	message := make([]byte, versionLen)
	if copy(message, version); t.Program != "" {
		copy(message[len(version):], perftestMark)
	}
	return message
}

// ReadFirst reads the beginning of a client's first message, as much as the shortest is long. A marked one it reads whole, and
// then exchanges terms.
func (t *Terms) ReadFirst(conn io.ReadWriter) (begin []byte, kind First, err error) {
	begin = make([]byte, versionLen)
	n, err := io.ReadFull(conn, begin)
	if err != nil {
		return begin[:n], Unknown, err
	}
	version, mark, _ := strings.Cut(string(begin), "\x00")
	accept := false
	switch {
	case begin[qpnOffset-1] == ':':
		kind = Pingpong
		if addresses := marked(begin); addresses > 0 {
			accept, begin[1] = true, '0'
			rest := make([]byte, addresses*destinationLen-len(begin))
			_, err = io.ReadFull(conn, rest)
			begin = append(begin, rest...)
		}
	case strings.Trim(version, "0123456789.") == "":
		kind, accept = Perftest, strings.TrimRight(mark, "\x00") == perftestMark[1:]
	}
	if err == nil && accept && t.Program != "" {
		err = t.accept(conn)
	}
	return begin, kind, err
}
