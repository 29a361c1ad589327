// Gives packets on late: takes them from a tun device, keeps each for -ms milliseconds, and puts it
// on the link -out, as it is, for the neighbour -mac. Beside netfilter, which has seen them already.
//
// Only packets of IPv4 for -to count; whatever else the node says on a new device is dropped. What
// it did is written to -counts as JSON: packets taken, given and lost, and the least and the most
// milliseconds that a packet was kept. Told to end, it first gives on what it still has. When the
// link is gone it ends, and with it the tun device: packets go directly again.
package main

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

type packet struct {
	taken time.Time
	data  []byte
}

type counts struct {
	Taken   int     `json:"taken"`
	Given   int     `json:"given"`
	Lost    int     `json:"lost"`
	LeastMS float64 `json:"least_ms"`
	MostMS  float64 `json:"most_ms"`
}

type relay struct {
	mu    sync.Mutex
	did   counts
	queue chan packet
	hurry chan struct{} // closed when it is told to end
	delay time.Duration
	to    net.IP
}

// as many packets wait at most; more are lost, as in any queue
const room = 1 << 15

func control(descriptor int, what uintptr, value unsafe.Pointer) {
	_, _, failed := syscall.Syscall(
		syscall.SYS_IOCTL, uintptr(descriptor), what, uintptr(value),
	)
	if failed != 0 {
		log.Fatalf("ioctl %#x: %v", what, failed)
	}
}

// a tun device that is up; it ends with this process.
func tun(name string, mtu int) int {
	device, err := syscall.Open("/dev/net/tun", syscall.O_RDWR, 0)
	check(err)
	var about struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	copy(about.name[:15], name)
	about.flags = syscall.IFF_TUN | syscall.IFF_NO_PI
	control(device, syscall.TUNSETIFF, unsafe.Pointer(&about))
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	check(err)
	defer syscall.Close(socket)
	var size struct {
		name [16]byte
		mtu  int32
		_    [20]byte
	}
	size.name, size.mtu = about.name, int32(mtu)
	control(socket, syscall.SIOCSIFMTU, unsafe.Pointer(&size))
	about.flags = syscall.IFF_UP | syscall.IFF_RUNNING
	control(socket, syscall.SIOCSIFFLAGS, unsafe.Pointer(&about))
	return device
}

// whether a packet is one of those that are to be late.
func (it *relay) wants(data []byte) bool {
	return len(data) >= 20 && data[0]>>4 == 4 && it.to.Equal(net.IP(data[16:20]))
}

func (it *relay) take(device int) {
	buffer := make([]byte, 1<<16)
	for {
		size, err := syscall.Read(device, buffer)
		if err == syscall.EINTR {
			continue
		}
		check(err)
		if !it.wants(buffer[:size]) {
			continue
		}
		one := packet{time.Now(), append([]byte(nil), buffer[:size]...)}
		it.mu.Lock()
		it.did.Taken++
		select {
		case it.queue <- one:
		default:
			it.did.Lost++
		}
		it.mu.Unlock()
	}
}

func (it *relay) give(socket int, to syscall.Sockaddr) {
	for one := range it.queue {
		select {
		case <-time.After(time.Until(one.taken.Add(it.delay))):
		case <-it.hurry:
		}
		err := syscall.Sendto(socket, one.data, 0, to)
		if err == syscall.ENXIO || err == syscall.ENODEV {
			log.Fatalf("the link is gone: %v", err)
		}
		kept := float64(time.Since(one.taken).Microseconds()) / 1000
		it.mu.Lock()
		if err != nil {
			it.did.Lost++
		} else {
			it.did.Given++
			it.did.MostMS = max(it.did.MostMS, kept)
			if it.did.Given == 1 || kept < it.did.LeastMS {
				it.did.LeastMS = kept
			}
		}
		it.mu.Unlock()
	}
}

func (it *relay) waiting() bool {
	it.mu.Lock()
	defer it.mu.Unlock()
	return it.did.Given+it.did.Lost < it.did.Taken
}

func (it *relay) tell(file string) {
	it.mu.Lock()
	text, err := json.Marshal(it.did)
	it.mu.Unlock()
	check(err)
	check(os.WriteFile(file+".partial", text, 0o644))
	check(os.Rename(file+".partial", file))
}

func main() {
	name := flag.String("tun", "", "name of the device that is made")
	out := flag.String("out", "", "the link that packets are put on")
	mac := flag.String("mac", "", "who is at the other end of it")
	to := flag.String("to", "", "the address whose packets come late")
	ms := flag.Int("ms", 0, "milliseconds that each packet is kept")
	file := flag.String("counts", "", "file for what was done")
	flag.Parse()

	link, err := net.InterfaceByName(*out)
	check(err)
	neighbour, err := net.ParseMAC(*mac)
	check(err)
	// protocol 0: it only sends
	socket, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM, 0)
	check(err)
	end := &syscall.SockaddrLinklayer{
		Protocol: binary.NativeEndian.Uint16([]byte{syscall.ETH_P_IP >> 8, syscall.ETH_P_IP & 0xff}),
		Ifindex:  link.Index,
		Halen:    uint8(len(neighbour)),
	}
	copy(end.Addr[:], neighbour)
	it := &relay{
		queue: make(chan packet, room),
		hurry: make(chan struct{}),
		delay: time.Duration(*ms) * time.Millisecond,
		to:    net.ParseIP(*to),
	}
	if it.to == nil {
		log.Fatalf("-to %q is no address", *to)
	}
	device := tun(*name, link.MTU)
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	go it.take(device)
	go it.give(socket, end)
	it.tell(*file)
	for {
		select {
		case <-time.After(100 * time.Millisecond):
			it.tell(*file)
		case <-told:
			close(it.hurry)
			for it.waiting() {
				time.Sleep(time.Millisecond)
			}
			return
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
