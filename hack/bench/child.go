package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"

	"github.com/vishvananda/netns"
)

// A child receives its job in its arguments, prints an endpoint when it is ready,
// and a result when it is done: after its job, or when its standard input ends.

// child is a running one, seen from the parent.
type child struct {
	command *exec.Cmd
	input   io.WriteCloser
	output  *json.Decoder
	ready   endpoint
}

func start(j job) (*child, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	c := &child{command: exec.Command("/proc/self/exe", "child", string(text))}
	c.command.Stderr = os.Stderr
	if c.input, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.output = json.NewDecoder(out)
	if err := c.command.Start(); err != nil {
		return nil, err
	}
	if err := c.output.Decode(&c.ready); err != nil {
		_ = c.command.Process.Kill()
		_ = c.command.Wait()
		return nil, fmt.Errorf("%s %s: %w", j.Variant, j.Role, err)
	}
	return c, nil
}

// finish waits for the child's result; with stop the child ends at once.
func (c *child) finish(stop bool) (r result, err error) {
	if stop {
		_ = c.input.Close()
	}
	err = c.output.Decode(&r)
	_ = c.input.Close()
	if waited := c.command.Wait(); err == nil {
		err = waited
	}
	return r, err
}

// stopping is set when the parent closes the child's standard input, and untilStopped ends.
var (
	stopping           atomic.Bool
	untilStopped, stop = context.WithCancel(context.Background())
)

// runChild is the child's main.
func runChild(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	switch j.Variant {
	case "udp", "udp gso", "udp gso cut", "raw", "xdp":
		runtime.LockOSThread() // the sockets are this thread's
		if err := enter(j.Namespace); err != nil {
			return err
		}
	case "inline", "ud inline", "rc send", "rc write", "rc read", "short send", "short write", "short read":
		runtime.LockOSThread() // a program that spins has a thread for it, as raw and udp have
	case "worker", "moderated", "ud worker", "daemon spinning":
		runtime.GOMAXPROCS(max(runtime.NumCPU(), 3))
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stopping.Store(true)
		stop()
	}()
	roles := map[string]func(job) (result, error){
		"udp receive": udpReceive, "udp send": udpSend, "udp pong": udpPong, "udp ping": udpPing,
		"udp gso receive": udpReceiveTrains, "udp gso send": udpSendTrains,
		"udp gso cut receive": udpReceiveCutTrains, "udp gso cut send": udpSendTrains,
		"raw receive": rawReceive, "raw send": rawSend,
		"inline receive": rocedReceive, "inline send": rocedSend, "inline pong": rocedPong, "inline ping": rocedPing,
		"worker receive": rocedReceive, "worker send": rocedSend, "worker pong": rocedPong, "worker ping": rocedPing,
		"udp receive group": udpReceiveGroup, "udp send group": udpSendGroup,
		"inline receive group": rocedReceiveGroup, "inline send group": rocedSendGroup,
		"ud inline receive": shortReceive, "ud inline send": shortSend, "ud inline pong": shortPong, "ud inline ping": shortPing,
		"ud worker receive": shortReceive, "ud worker send": shortSend, "ud worker pong": shortPong, "ud worker ping": shortPing,
		"requests udp serve": udpServe, "requests udp ask": udpAsk,
		"requests worker serve": udServe, "requests worker ask": udAsk,
		"inline receive mixed": receiveMixed, "inline send mixed": sendMixed,
		"worker receive mixed": receiveMixed, "worker send mixed": sendMixed,
		"xdp generate": generate, "worker idle": idle,
		"udp receive paced": udpReceivePaced, "udp send paced": udpSendPaced,
		"worker receive paced": rocedReceivePaced, "moderated receive paced": rocedReceivePaced, "worker send paced": rocedSendPaced,
		"daemon receive": rocedReceive, "daemon send": rocedSend, "daemon pong": rocedPong, "daemon ping": rocedPing,
		"daemon spinning receive": rocedReceive, "daemon spinning send": rocedSend, "daemon spinning pong": rocedPong, "daemon spinning ping": rocedPing,
		"daemon receive group": rocedReceiveGroup, "daemon send group": rocedSendGroup,
		"daemon run": runDaemon, "daemon connect": connectMany, "daemon objects": makeObjects, "worker objects": makeObjects,
		"rc send receive": connectedReceive, "rc write receive": connectedReceive, "rc read receive": connectedReceive,
		"rc send send": connectedSend, "rc write send": connectedSend, "rc read send": connectedSend, "rc send ping": connectedPing, "rc send pong": connectedPong,
		"short send receive": shortConnectedReceive, "short write receive": shortConnectedReceive, "short read receive": shortConnectedReceive,
		"short send send": shortConnectedSend, "short write send": shortConnectedSend, "short read send": shortConnectedSend,
		"short send ping": shortConnectedPing, "short send pong": shortConnectedPong,
		"tcp receive": tcpReceive, "tcp send": tcpSend, "tcp unsegmented receive": tcpReceive, "tcp unsegmented send": tcpSend,
		"udp join": udpJoin, "worker join": rocedJoin,
	}
	run := roles[j.Variant+" "+j.Role]
	if run == nil {
		return fmt.Errorf("no such job: %s %s", j.Variant, j.Role)
	}
	r, err := run(j)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func enter(path string) error {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return err
	}
	defer ns.Close()
	return netns.Set(ns)
}

// announce tells the parent that the child is ready.
func announce(e endpoint) error { return json.NewEncoder(os.Stdout).Encode(e) }
