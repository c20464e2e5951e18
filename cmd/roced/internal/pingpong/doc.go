// Package pingpong is messages of one size there and back, one at a time, as ibv_ud_pingpong
// and ib_send_lat send them: for roced ping, and for roced perf with perftest. It prints nothing.
package pingpong
