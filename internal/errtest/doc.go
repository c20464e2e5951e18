// Package errtest is what tests say about errors: that there is none, or which it is and what it tells.
package errtest
