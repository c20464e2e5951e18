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

// A scrape is small. A connection that takes longer, or sends more, is no scrape.
const (
	headerTime  = 5 * time.Second
	answerTime  = 30 * time.Second
	headerBytes = 8 << 10
)

// NewServer serves nothing yet. Over TCP, requests may name the service by the host names hosts, with commas between.
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

// refuseBodies answers requests with a body without waiting for it.
func refuseBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // else the server reads the body before it answers
		w.Header().Set("Connection", "close")
		http.Error(w, "a request for metrics has no body", http.StatusRequestEntityTooLarge)
	})
}

// Serve serves on a socket that stays until Close.
func (s *Server) Serve(l net.Listener) {
	s.passed = append(s.passed, s.start(l))
}

// ServeOwn serves on a socket that StopOwn ends.
func (s *Server) ServeOwn(l net.Listener) { s.own = s.start(l) }

func (s *Server) start(l net.Listener) *site {
	handler := s.handler
	if l.Addr().Network() != "unix" { // which no browser reaches
		handler = checkHost(handler, s.hosts)
	}
	limited := newLimited(l, s.log)
	one := &site{server: &http.Server{
		Handler: limited.closeIfFull(handler), ConnState: limited.track, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: answerTime, IdleTimeout: 2 * answerTime,
		MaxHeaderBytes: headerBytes,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}}
	s.log.Info("metrics", "listen", l.Addr())
	one.ended.Go(func() {
		if err := one.server.Serve(limited); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("no metrics any more", "listen", l.Addr(), "error", err)
		}
	})
	return one
}

func (o *site) stop() error {
	err := o.server.Close()
	o.ended.Wait()
	return err
}

// StopOwn ends what ServeOwn began.
func (s *Server) StopOwn() error {
	if s.own == nil {
		return nil
	}
	own := s.own
	s.own = nil
	return own.stop()
}

// Close ends all.
func (s *Server) Close() error {
	err := s.StopOwn()
	for _, one := range s.passed {
		err = errors.Join(err, one.stop())
	}
	return err
}
