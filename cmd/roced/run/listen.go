package run

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/cmd/roced/internal/loopback"
	"golang.org/x/sys/unix"
)

// socket is a unix socket of the service's own. Its name goes with it, before it stops to listen: until
// then nobody takes the name over, who would lose it here.
type socket struct {
	*net.UnixListener
	path string
	file fs.FileInfo // what the name stands for
}

// listenUnix listens at the socket's path, with its permissions from the first moment: it is bound
// under another name, and then renamed. That also replaces a socket that a killed service has left;
// one that somebody serves is an error, and so is what is no socket. A missing directory is made in a runtime directory
// only: elsewhere the path is probably a typo. Other users may enter it if they may use the socket.
func listenUnix(network string, c config.Socket) (*socket, error) {
	return listenUnixFrom(filepath.Dir(c.Path), network, c)
}

// listenUnixFrom is listenUnix with the folder of the other name.
func listenUnixFrom(folder, network string, c config.Socket) (*socket, error) {
	if err := checkName(network, c.Path); err != nil {
		return nil, err
	}
	group, err := groupID(c.Group)
	if err != nil {
		return nil, fmt.Errorf("socket.group: %w", err)
	}
	if err := makeDirectory(c); err != nil {
		return nil, notListening(c.Path, err)
	}
	s, err := bindUnix(network, c, group, folder)
	if err != nil {
		return nil, notListening(c.Path, withoutName(err))
	}
	return s, nil
}

// checkName returns an error if a path names anything except a socket that no process serves. It follows no link.
func checkName(network, path string) error {
	there, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	if there.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%w: %s is no socket, and is left as it is; --socket names another path", unix.EEXIST, path)
	}
	conn, err := net.Dial(network, path)
	if err == nil {
		conn.Close()
	}
	if err == nil || errors.Is(err, unix.EAGAIN) { // so many wait to connect that there is no room
		return fmt.Errorf("%w: another service listens at %s; --socket gives this one another path", unix.EADDRINUSE, path)
	}
	if errors.Is(err, unix.EPROTOTYPE) {
		return fmt.Errorf("%w: a program that is not roced listens at %s; --socket gives this service another path", unix.EADDRINUSE, path)
	}
	return nil
}

// notListening says what to do where an ordinary user may not make a socket.
func notListening(path string, err error) error {
	if os.Geteuid() != 0 && (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS)) {
		return fmt.Errorf("listen at %s: %w; an ordinary user gives a path of its own, such as --socket %s", path, err, loopback.Socket())
	}
	return fmt.Errorf("listen at %s: %w", path, err)
}

// bindUnix makes the socket in a folder of the same file system, in which nobody else may write, or its names are kept
// from others (sticky): permissions are given by name.
func bindUnix(network string, c config.Socket, group int, folder string) (*socket, error) {
	temporary := filepath.Join(folder, fmt.Sprintf(".roced-%d", os.Getpid()))
	if length := max(len(temporary), len(c.Path)); length >= len(unix.RawSockaddrUnix{}.Path) {
		return nil, fmt.Errorf("%w: the path has %d bytes, and the kernel takes at most %d; --socket names a shorter path", unix.ENAMETOOLONG, length, len(unix.RawSockaddrUnix{}.Path)-1)
	}
	listener, err := net.ListenUnix(network, &net.UnixAddr{Name: temporary, Net: network})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	file, err := os.Lstat(temporary)
	if err == nil {
		err = os.Chmod(temporary, c.Mode)
	}
	if err == nil && group >= 0 {
		err = os.Chown(temporary, -1, group)
	}
	if err == nil {
		err = os.Rename(temporary, c.Path)
	}
	if err != nil {
		_, _ = listener.Close(), os.Remove(temporary)
		return nil, err
	}
	return &socket{listener, c.Path, file}, nil
}

// withoutName is what went wrong without the name that the socket is made under: nobody has asked for that.
func withoutName(err error) error {
	var inCall *os.SyscallError // of bind
	var inPath *fs.PathError    // of chmod, chown
	var inLink *os.LinkError    // of rename
	switch {
	case errors.As(err, &inCall):
		return inCall
	case errors.As(err, &inPath):
		return fmt.Errorf("%s: %w", inPath.Op, inPath.Err)
	case errors.As(err, &inLink):
		return fmt.Errorf("%s: %w", inLink.Op, inLink.Err)
	}
	return err
}

// makeDirectory makes the directory of a socket. If the socket is for the service's own user alone, others must not
// be able to replace it in a directory that is there.
func makeDirectory(c config.Socket) error {
	dir := filepath.Dir(c.Path)
	private := c.Mode&0o077 == 0
	mode := fs.FileMode(0o755)
	if private {
		mode = 0o700
	}
	if err := makeMissing(dir, mode); err != nil {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	whole := dir
	if absolute, err := filepath.Abs(dir); err == nil {
		whole = absolute
	}
	switch {
	case private && int(stat.Uid) != os.Geteuid() && stat.Uid != 0:
		return fmt.Errorf("%w: %s belongs to another user, who could put a socket there instead; --socket names a path in a directory of your own", unix.EACCES, whole)
	case private && stat.Mode&0o022 != 0 && stat.Mode&unix.S_ISVTX == 0:
		return fmt.Errorf("%w: others can write to %s, and put a socket there instead; chmod go-w %[2]s, or --socket names a path in a directory of your own", unix.EACCES, whole)
	}
	return nil
}

// makeMissing makes a directory that does not exist. It returns ENOENT outside the runtime directories.
func makeMissing(dir string, mode fs.FileMode) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"/run", "/var/run", filepath.Clean(os.TempDir()), filepath.Clean(os.Getenv("XDG_RUNTIME_DIR"))}, filepath.Dir(whole)) {
		return fmt.Errorf("%w: there is no directory %s; mkdir makes it, or --socket names another path", unix.ENOENT, whole)
	}
	if err := os.Mkdir(whole, mode); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil // another service has made it meanwhile
}

// Addr is the path by which programs know the socket.
func (s *socket) Addr() net.Addr {
	return &net.UnixAddr{Name: s.path, Net: s.UnixListener.Addr().Network()}
}

// Close takes the socket's name away, if it is still this one's, and ends it.
func (s *socket) Close() error {
	var err error
	if now, failed := os.Lstat(s.path); failed == nil && os.SameFile(now, s.file) {
		err = os.Remove(s.path)
	}
	return errors.Join(err, s.UnixListener.Close())
}

// groupID is the number of a group, by name or number; -1 for an empty name.
func groupID(name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(n), nil
	}
	group, err := user.LookupGroup(name)
	if err != nil {
		return -1, fmt.Errorf("%w: there is no group %q", unix.ENOENT, name)
	}
	return strconv.Atoi(group.Gid)
}
