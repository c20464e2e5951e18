package deadline

import "time"

// Service is how long the service may take to respond to a new connection. Only tests on slow machines change it.
var Service = 10 * time.Second
