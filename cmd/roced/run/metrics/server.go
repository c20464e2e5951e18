// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server serves the metrics over HTTP.
type Server struct {
	handler http.Handler
	hosts   []string
	log     *slog.Logger
	passed  []*site
	own     *site
}

// site is a socket on which metrics are served.
type site struct {
	server *http.Server
	ended  sync.WaitGroup
}

// Limits of a request. A scrape needs far less.
const (
	headerTime   = 5 * time.Second
	responseTime = 30 * time.Second
	headerBytes  = 8 << 10
)

// NewServer creates a server without sockets. Over TCP, requests may use the host names in hosts, separated
// by commas.
func NewServer(devices func() []Device, programs Programs, hosts string, log *slog.Logger) *Server {
	s := &Server{handler: handler(newRegistry(devices, programs)), log: log}
	for name := range strings.SplitSeq(hosts, ",") {
		s.hosts = append(s.hosts, strings.TrimSpace(name))
	}
	return s
}

func newRegistry(devices func() []Device, programs Programs) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		&collector{devices, programs}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return registry
}

func handler(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return refuseBodies(mux)
}

// refuseBodies rejects requests with a body without reading the body.
func refuseBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // otherwise the server reads the body before it responds
		w.Header().Set("Connection", "close")
		http.Error(w, "a metrics request must not have a body", http.StatusRequestEntityTooLarge)
	})
}

// Serve serves on a socket until Close.
func (s *Server) Serve(l net.Listener) {
	s.passed = append(s.passed, s.start(l))
}

// ServeOwn serves on a socket until StopOwn.
func (s *Server) ServeOwn(l net.Listener) { s.own = s.start(l) }

func (s *Server) start(l net.Listener) *site {
	handler := s.handler
	if l.Addr().Network() != "unix" { // browsers cannot use unix sockets
		handler = checkHost(handler, s.hosts)
	}
	limited := newLimited(l, s.log)
	one := &site{server: &http.Server{
		Handler: limited.closeIfFull(handler), ConnState: limited.track, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: responseTime, IdleTimeout: 2 * responseTime,
		MaxHeaderBytes: headerBytes,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}}
	s.log.Info("serving metrics", "listen", l.Addr())
	one.ended.Go(func() {
		if err := one.server.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("serving metrics failed", "listen", l.Addr(), "error", err)
		}
	})
	return one
}

func (o *site) stop() error {
	err := o.server.Close()
	o.ended.Wait()
	return err
}

// StopOwn closes the socket of ServeOwn.
func (s *Server) StopOwn() error {
	if s.own == nil {
		return nil
	}
	own := s.own
	s.own = nil
	return own.stop()
}

// Close closes all sockets.
func (s *Server) Close() error {
	err := s.StopOwn()
	for _, one := range s.passed {
		err = errors.Join(err, one.stop())
	}
	return err
}
