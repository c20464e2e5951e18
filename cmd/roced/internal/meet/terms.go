// SPDX-License-Identifier: Apache-2.0

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

// Terms are the settings on which two roced programs must agree. They exchange them first, so that both
// report a difference immediately. The peer may also be a program of rdma-core or perftest, which has no
// terms. Therefore the client's first message is that of such a program, with a mark where these programs
// ignore it:
//
//	client                             server
//	first message, marked       ──►    (other programs continue as usual)
//	                            ◄──    "roced ", its terms as JSON, newline
//	"roced ", its terms, newline ──►
//
// The exchange then continues as without terms. A server that receives no mark, and a client that receives
// another response, continue without terms.
type Terms struct {
	Program  string    `json:"program"`         // perf or ping; empty: terms are not exchanged
	Settings []Setting `json:"settings"`        // required on both sides
	Payload  int       `json:"payload"`         // maximum payload of a packet in bytes; 0: as the smaller MTU permits
	Longest  string    `json:"-"`               // flag that sets Payload
	MTU      int       `json:"rdma_mtu"`        // RDMA MTU of this side's port in bytes
	Count    int       `json:"count,omitempty"` // number of messages; may differ between the sides

	peerCount int // 0 until the exchange, and for a peer without a count
}

// Setting is a flag with its value, if it has one.
type Setting struct {
	Flag  string `json:"flag"`
	Value string `json:"value,omitempty"`
}

const (
	termsPrefix = "roced "
	maxTerms    = 4096 // bytes of a line of terms
)

// Flag adds a setting without a value if on is true.
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

// Command returns the command line with these settings.
func (t *Terms) Command() string {
	text := "roced " + t.Program
	for _, s := range t.Settings {
		text += " " + strings.TrimSpace(s.Flag+" "+s.Value)
	}
	return text
}

// Offer runs the client's half, after its first message. It returns the connection to continue with, which
// includes the data read from a peer without terms.
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

// accept runs the server's half, after a first message with a mark.
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

// readTerms reads the line after the prefix, and no further bytes.
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
		return t, fmt.Errorf("invalid settings from the peer, %s: %w", Printable(string(line)), unix.EBADMSG)
	}
	return t, nil
}

// compare returns an error if the peer's terms differ.
func (t *Terms) compare(peer *Terms) error {
	t.peerCount = peer.Count
	remedy := t.remedy(peer)
	switch {
	case remedy != "":
		return fmt.Errorf("the peer runs %s, this side runs %s: %s: %w", Printable(peer.Command()), t.Command(), remedy, unix.EPROTO)
	case t.Payload > peer.MTU:
		return t.tooLong(t.Payload, peer.MTU, "the peer's", "there")
	case peer.Payload > t.MTU:
		return t.tooLong(peer.Payload, t.MTU, "this side's", "here")
	}
	return nil
}

// ExplainCount adds the counts of the two sides to an error if they differ, since one side then waits for messages that
// the other does not send.
func (t *Terms) ExplainCount(err error) error {
	if err == nil || t.peerCount <= 0 || t.peerCount == t.Count {
		return err
	}
	return fmt.Errorf("%w; the peer uses --count %d, this side --count %d: use the same on both sides", err, t.peerCount, t.Count)
}

func (t *Terms) tooLong(payload, mtu int, whose, where string) error {
	return fmt.Errorf("packets of %d bytes exceed %s RDMA MTU of %d: use %s of at most %[3]d on both sides, or raise the MTU of the interface %[5]s: %[6]w", payload, whose, mtu, t.Longest, where, unix.EMSGSIZE)
}

// remedy returns the flags to change on each side, or "" if the settings agree.
func (t *Terms) remedy(peer *Terms) string {
	if t.Program != peer.Program {
		return fmt.Sprintf("start %s there or %s here", t.Command(), Printable(peer.Command()))
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
	}{{here, "add %s here or omit it there"}, {there, "add %s there or omit it here"}, {differ, "use the same %s on both sides"}} {
		if len(part.flags) > 0 {
			parts = append(parts, fmt.Sprintf(part.text, Printable(strings.Join(part.flags, " "))))
		}
	}
	return strings.Join(parts, "; ")
}

// continued is a connection that first returns bytes which were read already.
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

// ignoreEnd drops the error of an ended connection; the next read returns it again.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// First is the kind of a client's first message.
type First int

// Kinds of first messages.
const (
	Unknown  First = iota
	Pingpong       // of ibv_*_pingpong
	Perftest       // of perftest
)

// Marks of roced clients. Other programs ignore them: rdma-core parses the LID with sscanf's %x, perftest its
// version up to the NUL.
const (
	oneMark      = "0x00" // LID of a single address
	srqMark      = "0X00" // LID of the first of SRQAddresses
	perftestMark = "\x00roced"
	versionLen   = 16 // length of perftest's first message
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

// marked returns the number of addresses in a marked first message of a pingpong client; 0 without a mark.
func marked(begin []byte) int {
	switch string(begin[:len(oneMark)]) {
	case oneMark:
		return 1
	case srqMark:
		return SRQAddresses
	}
	return 0
}

// Version returns perftest's first message for a version, marked if terms are exchanged.
func (t *Terms) Version(version string) []byte {
	message := make([]byte, versionLen)
	if copy(message, version); t.Program != "" {
		copy(message[len(version):], perftestMark)
	}
	return message
}

// ReadFirst reads the first versionLen bytes of a client's first message. It reads a marked message
// completely and then exchanges terms.
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
