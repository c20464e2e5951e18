// Package socket is roced socket: sockets of the service for containers, each a user of its own.
package socket
