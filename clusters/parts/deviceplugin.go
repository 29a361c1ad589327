// A device plugin of the kubelet whose devices are pretended: it offers as many as a file says, in
// the health that the file says, and follows the file as it changes:
//
//	{"count": 4, "unhealthy": [1]}
//
// It owns the resource on its node for as long as it runs. A kubelet that starts empties the folder
// of plugins and makes its socket anew: the plugin then listens and registers again.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	// of the kubelet, and ours beside it
	kubeletSocket, ownSocket = "kubelet.sock", "muster-gpus.sock"
	// until all is looked at again where no change was seen: all in order, and not
	calm, hurry = 2 * time.Second, 100 * time.Millisecond
	// within which a kubelet opens its stream to who has registered
	opens = 5 * time.Second
	// a container finds the ids of its devices there
	visible = "NVIDIA_VISIBLE_DEVICES"
)

// Offer is what the file says.
type Offer struct {
	Count     int   `json:"count"`
	Unhealthy []int `json:"unhealthy"` // indexes, from 0
}

func (offer Offer) devices() []*api.Device {
	devices := []*api.Device{}
	for index := range offer.Count {
		health := api.Healthy
		if slices.Contains(offer.Unhealthy, index) {
			health = api.Unhealthy
		}
		devices = append(devices, &api.Device{ID: fmt.Sprintf("gpu-%d", index), Health: health})
	}
	return devices
}

// plugin is what the kubelet calls.
type plugin struct {
	api.UnimplementedDevicePluginServer
	mutex   sync.Mutex
	text    string        // of the file, as it was last read
	offer   Offer         // what that means
	changed chan struct{} // closed when the offer is another one
	streams int           // that kubelets have open
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	p.open(1)
	defer p.open(-1)
	for {
		p.mutex.Lock()
		offer, changed := p.offer, p.changed
		p.mutex.Unlock()
		if err := stream.Send(&api.ListAndWatchResponse{Devices: offer.devices()}); err != nil {
			return err
		}
		log.Printf("offered %d devices, unhealthy: %v", offer.Count, offer.Unhealthy)
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

func (p *plugin) Allocate(_ context.Context, asked *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range asked.ContainerRequests {
		slices.Sort(container.DevicesIds)
		ids := strings.Join(container.DevicesIds, ",")
		log.Printf("allocated %s", ids)
		answer.ContainerResponses = append(answer.ContainerResponses,
			&api.ContainerAllocateResponse{Envs: map[string]string{visible: ids}})
	}
	return answer, nil
}

func (p *plugin) open(more int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.streams += more
}

func (p *plugin) watched() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.streams > 0
}

// read takes the file's offer; one that cannot be understood changes nothing.
func (p *plugin) read(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if string(text) == p.text {
		return nil
	}
	offer := Offer{}
	if err := json.Unmarshal(text, &offer); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	p.text, p.offer = string(text), offer
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

// life is the plugin's presence before one kubelet.
type life struct {
	folder, resource string
	plugin           *plugin
	server           *grpc.Server
	kubelet          string // which socket of a kubelet it has registered at
	since            time.Time
}

// settle makes sure that there is a socket of ours and that the kubelet of now knows it.
func (l *life) settle() error {
	own := filepath.Join(l.folder, ownSocket)
	if l.server == nil || which(own) == "" {
		if err := l.listen(own); err != nil {
			return err
		}
	}
	now := which(filepath.Join(l.folder, kubeletSocket))
	if now == "" {
		return fmt.Errorf("there is no kubelet")
	}
	if now == l.kubelet && (l.plugin.watched() || time.Since(l.since) < opens) {
		return nil
	}
	if err := l.register(); err != nil {
		return fmt.Errorf("registering: %w", err)
	}
	l.kubelet, l.since = now, time.Now()
	log.Printf("registered %s", l.resource)
	return nil
}

func (l *life) listen(own string) error {
	if l.server != nil {
		l.server.Stop()
	}
	l.server, l.kubelet = nil, ""
	os.Remove(own)
	listener, err := net.Listen("unix", own)
	if err != nil {
		return err
	}
	// Close must not remove a socket that was made meanwhile under the same name
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	l.server = grpc.NewServer()
	api.RegisterDevicePluginServer(l.server, l.plugin)
	go l.server.Serve(listener)
	return nil
}

func (l *life) register() error {
	target := "unix://" + filepath.Join(l.folder, kubeletSocket)
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	limited, cancel := context.WithTimeout(context.Background(), opens)
	defer cancel()
	_, err = api.NewRegistrationClient(connection).Register(limited, &api.RegisterRequest{
		Version: api.Version, Endpoint: ownSocket, ResourceName: l.resource,
		Options: &api.DevicePluginOptions{},
	})
	return err
}

// which tells a file from another one that was made later under its name; "" where there is none.
func which(path string) string {
	var stat syscall.Stat_t
	if syscall.Stat(path, &stat) != nil {
		return ""
	}
	return fmt.Sprint(stat.Ino, stat.Ctim.Sec, stat.Ctim.Nsec)
}

// changes says that something in one of the folders is another than before.
func changes(folders ...string) <-chan struct{} {
	seen := make(chan struct{}, 1)
	notifier, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		log.Printf("changes are looked for every %s only: %v", calm, err)
		return seen
	}
	for _, folder := range folders {
		mask := uint32(syscall.IN_CREATE | syscall.IN_DELETE | syscall.IN_MOVED_TO)
		if _, err := syscall.InotifyAddWatch(notifier, folder, mask); err != nil {
			log.Printf("%s is looked at every %s only: %v", folder, calm, err)
		}
	}
	go func() {
		for events := make([]byte, 65536); ; {
			if _, err := syscall.Read(notifier, events); err != nil && err != syscall.EINTR {
				log.Fatalf("reading what changed: %v", err) // and started again
			}
			select {
			case seen <- struct{}{}:
			default: // somebody looks soon anyway
			}
		}
	}()
	return seen
}

func main() {
	log.SetFlags(log.Ltime | log.Lmicroseconds)
	folder := flag.String("folder", api.DevicePluginPath, "where the kubelet's sockets of plugins are")
	resource := flag.String("resource", "", "name of the resource")
	file := flag.String("offer", "", "the file that says what is offered")
	flag.Parse()
	if err := os.MkdirAll(*folder, 0o750); err != nil {
		log.Fatal(err)
	}
	changed := changes(*folder, filepath.Dir(*file))
	it := &plugin{changed: make(chan struct{})}
	here := &life{folder: *folder, resource: *resource, plugin: it}
	for told := ""; ; {
		err := it.read(*file)
		if err == nil {
			err = here.settle()
		}
		pause, now := calm, ""
		if err != nil {
			pause, now = hurry, err.Error()
		}
		if now != told && now != "" {
			log.Print(now)
		}
		told = now
		select {
		case <-changed:
		case <-time.After(pause):
		}
	}
}
