package server

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNamespaceOfTheGone: the namespace of a process that has ended is not that of who has its number now.
func TestNamespaceOfTheGone(t *testing.T) {
	check(t, CanTellCallers())
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	check(t, err)
	defer listener.Close()
	child := exec.Command(os.Args[0], path)
	child.Env = append(os.Environ(), childVariable+"=connects")
	check(t, child.Start())
	socket, err := listener.AcceptUnix()
	check(t, err)
	defer socket.Close()
	raw, err := socket.SyscallConn()
	check(t, err)
	of := func(pid int) (file *os.File, err error) {
		failed := raw.Control(func(fd uintptr) { file, err = namespaceOf(int(fd), pid) })
		check(t, failed)
		return file, err
	}
	file, err := of(child.Process.Pid)
	check(t, err)
	check(t, file.Close())
	check(t, child.Process.Signal(unix.SIGKILL))
	_ = child.Wait()
	if file, err := of(os.Getpid()); err == nil { // as if this process had got the number
		t.Errorf("a namespace of a process that has ended: %v", file.Close())
	}
	if _, err := of(0); err == nil {
		t.Error("a namespace of a process that the service does not see")
	}
}

// connects is a program that connects and stays.
func connects(path string) error {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}
