// Every bound and pace, each with its reason. `Limits` is what a node keeps to: production uses the defaults (or the daemon's
// options), and the simulator draws them at random per seed, but for those of sockets, which it has none of. What a program
// that uses a daemon keeps to is `LibraryLimits`.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/time.h"

namespace hoplite {

// Of the connections between nodes.
struct SocketLimits {
  int backlog = 1024;                   // connections that nobody has accepted: a whole cluster dialling at once
  std::size_t max_handshakes = 512;     // connections that have not proved themselves; of more, the oldest goes
  Duration handshake = Duration::s(5);  // for a stranger to prove itself, at our leisure: it costs little
  // A lost SYN is sent again after 1 s. A peer that is only slow answers within that; one that is gone is given up as fast as
  // a silent one is.
  Duration connect = Duration::s(1);
  // Four messages of a few hundred bytes: a process that does not manage them in this time is stopped or overwhelmed.
  Duration greeting = Duration::s(1);
  // Those who send bound what is queued for a peer (max_open_questions, max_backlog_bytes). This is for a defect of theirs.
  std::size_t max_queued_bytes = 128 * kMiB;
  std::size_t max_strangers = 1024;            // hosts that are named in the log: as many lines, and 100 KiB
  Duration strangers_for = Duration::s(3600);  // then all are named again: a misconfigured node is, every hour
  Duration goodbye = Duration::ms(50);         // peers that are told that we leave may have to be dialled
};

// Of the processes that use a daemon, as the daemon sees it.
struct ClientLimits {
  int backlog = 128;  // starts of many workers at once; more than that wait in connect()
  // Processes of one machine, with room; each costs two descriptors. Those count that keep views of a connection that ended.
  std::size_t max_clients = 1024;
  std::size_t max_outstanding = 65'536;  // requests of one client without a reply: 100 times what hides any latency
  // Replies that a client has not read: of more, no further request of it is read until it has read half. Enough to keep it
  // busy while the daemon serves others.
  std::size_t max_unread_bytes = 1 * kMiB;
  std::size_t max_holders = 16;  // processes that a status names: the largest are what one looks for
  // Packets of views given back that are taken from one lease before others have their turn; 277 fit into the socket.
  std::size_t packets_per_turn = 64;
  std::size_t max_fields_bytes = 256 * kKiB;  // of a frame besides the bytes of a small object: 10,000 ids of a reduce
  std::size_t max_handshakes = 128;           // connections that have not answered the greeting; the oldest goes
  Duration handshake = Duration::s(10);       // to answer it
  Duration accept_pause = Duration::ms(100);  // without descriptors: long enough that some may have been closed
  std::size_t max_remembered_offenders = 1024;  // so that each process is logged once
  Duration goodbye = Duration::s(1);            // to read the last replies of a daemon that stops
};

// Of the library in a process that uses a daemon.
struct LibraryLimits {
  std::size_t max_wait_ids = 4'000;         // of one wait, 16 bytes each: a quarter of what the daemon takes
  std::size_t max_releases = 4'000;         // views given back in one message or packet: 32 KB
  std::size_t max_text_bytes = 4 * kKiB;    // of metadata
  std::size_t max_pending = 60'000;         // below the daemon's own limit: a caller that never collects results
  std::size_t max_queued_bytes = 4 * kMiB;  // then asynchronous callers wait: the daemon does not keep up
  // Children that hold views of ours, each known by a descriptor; what those beyond share is kept until the lease ends.
  std::size_t max_watched_forks = 64;
  std::size_t max_reply_bytes = 16 * kMiB;  // well over the daemon's limit for one message
  // The daemon ends calls at their deadline and says why; only if it is stuck do we end them ourselves.
  Duration grace = Duration::s(1);
  Duration take_back = Duration::s(5);  // for the removal of what was started, when another part of it failed
};
static_assert(LibraryLimits{}.max_pending < ClientLimits{}.max_outstanding);
static_assert(LibraryLimits{}.max_wait_ids * 16 < ClientLimits{}.max_fields_bytes);

struct Limits {
  SocketLimits sockets;
  ClientLimits clients;

  // --- objects
  std::uint64_t inline_bytes = 64 * kKiB;  // travel with the answer: below this a round trip costs more than the bytes
  std::uint64_t max_meta_bytes = 4 * kKiB + 768;  // dtype, shape, name, 4 KiB of text: not a place for data
  std::uint32_t max_objects = 4'000'000;          // local records of one node, with and without a copy
  std::uint32_t max_waiting_for_room = 4096;      // creates beyond fail at once: each step looks at all that wait
  // Deletes that are remembered to answer "deleted" at once, oldest go first; about 200 B each.
  std::uint32_t max_tombstones = 100'000;
  // Of what members that are away may bring back: as many as small objects on a node. Beyond, those members are forgotten.
  std::uint32_t max_needed_tombstones = 1'000'000;
  std::uint32_t max_lost = 100'000;            // remembered by a home, to answer "lost" at once; oldest go first
  std::uint32_t max_hearsay = 1'000'000;       // ids that a deputy keeps for other homes; about 200 B each
  Duration hearsay_every = Duration::ms(400);  // what a deputy does not know yet dies with its home
  Duration tombstone_life = Duration::s(600);  // a script that looks for what it deleted has looked by then
  Duration absent_life = Duration::s(86'400);  // who is away for a day has to come back with an empty store
  Duration clock_margin = Duration::s(10);     // clocks, and verdicts of death, differ by less than that
  Duration late_word = Duration::s(60);        // no message is under way for so long: its connection is dead by then

  // --- waiting
  Duration want_refresh = Duration::s(3);     // waits are soft state at the home: re-sent this often
  Duration waiting_after = Duration::ms(2);   // a want that is answered sooner is not told that it has to wait
  Duration request_retry = Duration::s(1);    // unanswered put, delete, evict requests are sent again
  Duration stall_after = Duration::ms(500);   // a parent silent this long is asked around: 10 missed signs of life
  Duration starved_every = Duration::ms(50);  // a live parent with nothing to send says so this often
  Duration drain = Duration::s(5);            // who is told to stop finishes transfers that run, for this long at most

  // --- trying again, in multiples of one pace
  Duration retry_backoff = Duration::ms(20);  // before asking a home again that refused or disagreed
  std::uint32_t settle_backoffs = 2;  // two nodes that disagree about a home or an address give the news time to arrive
  std::uint32_t room_backoffs = 5;    // room was granted, and yet the object did not fit: not again at once
  std::uint32_t forgive_backoffs = 10;  // parents that refused or fell silent are asked again, if there is nobody else
  std::uint32_t output_backoffs = 10;   // a slot's output that finds no room for so long is made by another node
  std::uint32_t quick_retries = 3;      // of a pull come at once: its parent died, and every millisecond counts
  std::uint32_t slowest_retry = 25;     // pauses between further pulls grow up to this many backoffs: half a second
  std::uint32_t stall_doublings =
      6;                            // patience with silent parents is doubled so often: 32 s, when our own link is full
  std::uint32_t input_stalls = 8;   // an input of a reduce has no other parent: it bears so many stalls of silence
  std::uint32_t parked_stalls = 8;  // a pull waits here for so many stalls: longer than a child that can ask others
  // An answer may be queued behind frames of other streams, but not for ever: the pull may also have been parked.
  std::uint32_t queued_stalls = 4;

  std::uint32_t input_refusals = 8;  // pulls of an input that end early before the coordinator is told: half a second

  // --- membership
  Duration join_grace = Duration::s(3);  // with seeds given, a node does not believe that it is alone for this long
  Duration watch_for = Duration::s(5);   // after its last use a peer is pinged: longer than want_refresh
  Duration relay_for = Duration::s(2);   // a live peer that we have no path to is reached through others; then one try
  std::uint32_t max_probes_for_others = 1'024;    // older ones are forgotten, and the asker falls back on the rest
  Duration ping_every = Duration::ms(250);        // to peers that we depend on
  Duration gossip_every = Duration::ms(1000);     // to one random member
  Duration ping_timeout = Duration::ms(400);      // then others are asked to try
  Duration indirect_timeout = Duration::ms(500);  // then the peer is declared dead: 0.9 to 1.15 s in all
  std::uint32_t indirect_probes = 3;
  std::uint32_t gossip_fanout = 3;         // news are passed on at once to this many: log3(1000) = 7 hops
  std::uint32_t gossip_repeats = 4;        // times each news rides on a ping, times log2(members)
  std::uint32_t max_gossip_updates = 64;   // per message
  Duration sync_every = Duration::s(5);    // full exchange with a random member: repairs what gossip lost
  Duration rejoin_every = Duration::s(2);  // dead addresses and seeds are tried for ever at this pace
  std::uint32_t max_members = 20'000;      // alive and dead
  // No node comes back so often. Beyond it would be a life whose end it could not refute.
  std::uint32_t max_incarnation = 1U << 31;

  // --- directory
  Duration announce_every = Duration::s(60);    // each home compares notes with us this often: repairs what was lost
  std::uint32_t max_parked_requests = 100'000;  // until a new home knows what it should; others are sent again
  std::uint32_t max_deaths = 64;  // since a home was asked; beyond, searching the list is not worth it: all is unknown
  std::uint32_t facts_per_message = 512;   // announcements are sent in batches of this size (about 50 KiB)
  std::uint32_t max_open_questions = 256;  // to one peer; answers of 64 KiB each are 16 MiB. Further ones wait here.
  // Queued for one peer: further bytes are not sent with the answer, but pulled. More than a link takes in a round trip.
  std::uint64_t max_backlog_bytes = 1 * kMiB;
  // Objects that are compared in one step, and told if they differ, before the home has answered: a fraction of a
  // millisecond, and one message.
  std::uint32_t compared_at_once = 512;

  // --- broadcast
  std::uint64_t slice_bytes = 0;             // cut objects larger than this into slices; 0 = as the cost model says
  std::uint32_t crowd = 64;                  // from so many nodes on, two trees may be better than a chain
  std::uint32_t max_slices = 64;             // watermarks of one copy
  std::uint32_t max_children = 16;           // receivers served by one copy at a time
  std::uint32_t max_relays = 64;             // of one small object, at a time: so many links are as good as more
  std::uint32_t max_passes = 64;             // a relay remembers for an object that is still on its way to it
  std::uint32_t max_cut_off = 64;            // named in one request: more are hardly all alive for long
  std::uint32_t max_ferry_tries = 8;         // nodes that are ordered to fetch for one, before the first is again
  std::uint32_t max_ferries = 10'000;        // objects that a node fetches for others at a time
  std::uint32_t ferry_refreshes = 3;         // an order to fetch for another runs out after so many of its requests
  std::uint32_t max_parked_pulls = 64;       // of one object, until it is attached; more are refused and ask again
  std::uint64_t default_rate = 125'000'000;  // bytes/s assumed of a link until measured: 1 Gbit/s
  Duration hop_latency = Duration::us(100);  // assumed of a message one way, until pings have measured it
  Duration least_hop = Duration::us(5);      // a ping that is faster than any network says nothing about one,
  Duration most_hop = Duration::ms(100);     // nor does one that met a pause

  std::uint64_t worth_measuring_bytes = kMiB;  // smaller fetches say little about links
  std::uint32_t small_share = 64;  // of the store: what takes less than one part in so many need not queue for room

  // --- reduce
  std::uint32_t reports_per_refresh =
      10;                              // progress of a target, for those who ask; slots say that they live less often
  std::uint32_t max_sources = 10'000;  // of one reduce: 160 KiB of ids
  std::uint64_t max_source_bytes = std::uint64_t{1} << 48;  // sums of such sizes do not overflow
  std::uint32_t max_named = 5;  // ids in a sentence about what is awaited, and lines about what one death has lost
  std::uint32_t max_names_bytes = 64 * kKiB;  // of its sources, for people; with the ids, half a frame
  std::uint32_t max_reduces = 10'000;         // coordinated by one node at a time
  Duration gather_for = Duration::ms(2);      // sources that arrive within this are planned together
  std::uint32_t max_reports = 1'000;          // of reduces that have ended, kept for those who ask
  bool always_whole = false;                  // for tests: treat every operator as one that needs whole contributions
  std::uint32_t reduce_width = 0;             // of reduce trees; 0 = as the cost model says
  Duration tree_work =
      Duration::ms(1);  // a tree costs before bytes flow: orders, streams, threads to wake; 8 hosts, 2 cores

  // --- the wire
  std::uint32_t max_message_bytes = 4 * kMiB;        // one control message with its payload
  std::uint32_t max_frame_bytes = 1 * kMiB;          // one bulk frame: bounds how long another job waits for its turn
  std::uint32_t shared_frame_bytes = 256 * kKiB;     // while streams take turns: 4 ms at 500 Mbit/s, little to headers
  std::uint32_t max_asked_pulls = 4096;              // of one child, that wait for an answer; more are refused
  std::uint32_t max_queued_frames_bytes = 1 * kMiB;  // short frames for a child that does not read; then it is cut off
  std::uint32_t least_share = 20;                    // a lower priority that waits gets one byte of so many
  Duration urgent_idle_after = Duration::ms(50);     // an urgent pull without a byte for so long holds no others
  Duration idle_link_life = Duration::s(60);         // a link that is used now and then need not be dialled again

  Duration settle_after() const { return retry_backoff * settle_backoffs; }
  Duration ferry_for() const { return want_refresh * ferry_refreshes; }
  Duration forgive_after() const { return retry_backoff * forgive_backoffs; }
};

}  // namespace hoplite
