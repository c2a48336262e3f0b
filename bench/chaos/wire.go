//go:build linux

package main

import (
	"net"
	"sync"
	"time"
)

// Ways of a wire.
const (
	wireWhole  = iota
	wireShut   // new connections are closed at once
	wireHeld   // nothing passes in either direction
	wireDeaf   // what the server says does not arrive
	wireBroken // a connection ends when its next bytes come
)

// wire stands between the processes and PostgreSQL and can be cut.
type wire struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	way      int
	changed  chan struct{} // closed and made anew with each change
	open     map[net.Conn]bool
}

func startWire(to string) (*wire, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{listener: listener, to: to, changed: make(chan struct{}), open: map[net.Conn]bool{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go w.carry(conn)
		}
	}()
	return w, nil
}

func (w *wire) address() string { return w.listener.Addr().String() }

// set changes the way of the wire.
func (w *wire) set(way int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.way = way
	close(w.changed)
	w.changed = make(chan struct{})
}

// cut closes every connection.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.open {
		_ = conn.Close()
	}
}

func (w *wire) close() {
	_ = w.listener.Close()
	w.set(wireWhole)
	w.cut()
}

func (w *wire) keep(conn net.Conn, open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if open {
		w.open[conn] = true
	} else {
		delete(w.open, conn)
	}
}

func (w *wire) carry(near net.Conn) {
	defer near.Close()
	if w.state() == wireShut {
		return
	}
	far, err := net.DialTimeout("tcp", w.to, 5*time.Second)
	if err != nil {
		return
	}
	defer far.Close()
	w.keep(near, true)
	w.keep(far, true)
	defer w.keep(near, false)
	defer w.keep(far, false)
	done := make(chan struct{}, 2)
	pump := func(to, from net.Conn, answers bool) {
		defer func() { done <- struct{}{} }()
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if n > 0 && w.pass(answers) {
				if _, err := to.Write(buffer[:n]); err != nil {
					return
				}
			} else if n > 0 {
				return
			}
			if err != nil {
				return
			}
		}
	}
	go pump(far, near, false)
	go pump(near, far, true)
	<-done // one end is gone: so is the other
}

func (w *wire) state() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.way
}

// pass waits until bytes may go on; false ends their connection.
func (w *wire) pass(answers bool) bool {
	for {
		w.mu.Lock()
		way, changed := w.way, w.changed
		w.mu.Unlock()
		switch {
		case way == wireBroken:
			return false
		case way == wireHeld, way == wireDeaf && answers:
			<-changed
		default:
			return true
		}
	}
}
