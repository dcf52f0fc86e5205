//! Through a real socket.
