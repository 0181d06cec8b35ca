//! Files with one mistake each: on which line the mistake is said to be, under which key, in which words.

use super::{one_error, parse};

/// Checks a table of files with one mistake each: `file => line key => words of the error`. The file
/// follows the two lines of the minimal one; a semicolon ends each line but the last.
fn refused(table: &str) {
    for row in table.lines().filter(|row| !row.is_empty()) {
        let [file, place, words] = row.split(" => ").collect::<Vec<_>>()[..] else {
            panic!("{row:?} is no row");
        };
        let (line, key) = place.split_once(' ').expect(row);
        let file = format!("{}\n", file.replace("; ", "\n"));
        one_error(&file, line.parse().expect(row), key, words);
    }
}

/// Makes a test of each table.
macro_rules! refused {
    ($($name:ident: $table:literal)*) => {$(
        #[test]
        fn $name() {
            refused($table);
        }
    )*};
}

refused! {
unknown_keys_name_the_nearest: r#"
[limits]; recipient_max = 5 => 4 limits.recipient_max => is recipients_max
[limtis] => 3 limtis => the nearest known one is limits
[tls]; [[tls.snj]] => 4 tls.snj => the nearest known one is sni
[smtp]; message_size_max = 5 => 4 smtp.message_size_max => limits.message_size_max
quite_another_thing = 5 => 3 quite_another_thing => unknown key
"a\nb" = 5 => 3 "a\nb" => unknown key
"limits.hops_max" = 50 => 3 limits.hops_max => unknown key
"#

wrong_types_say_what_is_wanted: r#"
[limits]; recipients_max = "9" => 4 limits.recipients_max => expected a number from 100 to 100000; found a string
[limits]; message_size_max = 9 => 4 limits.message_size_max => a size such as "10 MiB"
[smtp]; listen = "[::]:25" => 4 smtp.listen => expected a list of addresses
[smtp]; listen = [25] => 4 smtp.listen => expected a list of addresses with ports such as ["[::]:25"]; found a number
smtp = 3 => 3 smtp => expected a section [smtp]; found a number
route = [1] => 3 route[1] => expected sections [[route]]
[[limits]] => 3 limits => expected a section [limits]; found a list
[route]; domain = "*" => 3 route => expected sections [[route]]
"#

values_out_of_range_say_what_is_allowed: r#"
[limits]; recipients_max = 99 => 4 limits.recipients_max => a number from 100 to 100000
[limits]; recipients_max = -1 => 4 limits.recipients_max => a number from 100
[delivery]; port = 65536 => 4 delivery.port => a number from 1 to 65535
[limits]; message_size_max = "1 B" => 4 limits.message_size_max => from 64 KiB to 2 GiB
[limits]; command_timeout = "0s" => 4 limits.command_timeout => from 1s to 1d
[limits]; command_timeout = "5" => 4 limits.command_timeout => has no unit
[delivery]; retry = [] => 4 delivery.retry => at least one
[delivery]; tls = "on" => 4 delivery.tls => "off", "opportunistic", "required"
[[front.list]]; zone = "bl.example"; weight = -1001 => 5 front.list[1].weight => expected a number from -1000 to 1000
[[front.list]]; zone = "bl.example"; answers = ["127.0.0"] => 5 front.list[1].answers => expected an address such as 127.0.0.2
[front.lists]; allow_threshold = 0 => 4 front.lists.allow_threshold => expected a number from -1000000 to -1
[front]; refused_helo = ["."] => 4 front.refused_helo => expected a host name
[front]; refused_senders = ["<bob@example.net>"] => 4 front.refused_senders => without angle brackets
[front]; refused_senders = ["@example.net"] => 4 front.refused_senders => without angle brackets
[front]; allowed_senders = ["bob@.example.net"] => 4 front.allowed_senders => expected a host name
[front]; loops = 3 => 4 front.loops => at most front.workers, which is 2; found 3
[front]; workers = 16; loops = 17 => 5 front.loops => 16
[front]; loops = 0 => 4 front.loops => 16
[front]; spf = "on" => 4 front.spf => "off", "fail", "softfail"
[relay]; networks = ["10.1.0.0/8"] => 4 relay.networks => the network is 10.0.0.0/8
[smtp]; listen = ["localhost:25"] => 4 smtp.listen => not a name
user = "../root" => 3 user => must not hold a slash
data = "" => 3 data => must not be empty
data = "a\u0000b" => 3 data => control characters
[delivery]; maildir = "{data}/{local}" => 4 delivery.maildir => expected {domain}
[delivery]; maildir = "{home}/{domain}/{local}" => 4 delivery.maildir => no other placeholders
[directory]; store = "ldap:x" => 4 directory.store => sqlite:PATH
[directory]; subaddress_separator = "@" => 4 directory.subaddress_separator => expected one of
[acme]; directory = "http://ca" => 4 acme.directory => https://
"#

a_section_that_lacks_something_is_named_by_its_own_line: r#"
[smtp]; [records] => 4 records => needs records.file
"#

call_ahead_needs_a_front_and_another_system: r#"
[[route]]; domain = "a.b"; next_hop = "c.d"; call_ahead = "yes" => 6 route[1].call_ahead => needs [front]
[smtp]; [front]; [[route]]; domain = "*"; next_hop = "c.d"; call_ahead = "yes" => 8 route[1].call_ahead => domain = "*" would relay for every client
[smtp]; [front]; [[route]]; domain = "a.b"; next_hop = "local"; call_ahead = "yes" => 8 route[1].call_ahead => needs another system as next hop
[smtp]; [front]; [[route]]; domain = "a.b"; next_hop = "127.0.0.1"; call_ahead = "yes" => 8 route[1].call_ahead => found this system
[smtp]; [front]; [[route]]; domain = "a.b"; next_hop = "MX.example.org:25"; call_ahead = "yes" => 8 route[1].call_ahead => found this system
[smtp]; listen = ["192.0.2.1:26"]; [front]; [[route]]; domain = "a.b"; next_hop = "192.0.2.1:26"; call_ahead = "yes" => 9 route[1].call_ahead => found this system
[smtp]; [front]; call_ahead_timeout = "16s" => 5 front.call_ahead_timeout => from 1s to 15s
"#

authorities_of_a_web_server_need_one_that_encrypts: r#"
[records]; webhook_ca = "ca"; file = "f" => 4 records.webhook_ca => needs an https:// address
[records]; webhook_ca = "ca"; webhook = "http://127.0.0.1/"; webhook_secret = "s" => 4 records.webhook_ca => needs an https:// address
"#

contradictions: r#"
[front]; hand_over = "connected"; [proxy]; networks = ["192.0.2.0/24"] => 6 proxy.networks => not understood by workers
[front]; [xclient]; networks = ["192.0.2.0/24"] => 5 xclient.networks => not understood by the front
[front]; [smtp]; listen = [] => 3 front => needs an address of port 25
[submissions]; listen = ["[::]:465"] => 4 submissions.listen => needs a certificate
[submission]; listen = ["[::]:587"] => 4 submission.listen => without a certificate no client can authenticate
[tls]; key = "k" => 4 tls.key => needs tls.certificate
[limits]; message_size_max = "200 MiB" => 4 limits.message_size_max => more than half
[metrics]; listen = "[::]:25" => 4 metrics.listen => twice
[spool]; replicas_min = 3 => 4 spool.replicas_min => 3 copies need as many
[spool]; replicas = 3 => 4 spool.replicas => there are 2
[spool]; as = "east" => 4 spool.as => no [[spool.account]] named "east"
[spool]; replicas = 1; replicas_min = 2 => 5 spool.replicas_min => is more than spool.replicas
[delivery]; expire = "1h" => 3 delivery.delay_notice => not before
[[route]]; domain = "a.b"; next_hop = "c.d"; [[route]]; domain = "a.b"; next_hop = "c.d" => 7 route[2].domain => route[1] is for the same
"#

x400_sections: r#"
[x400]; listen = []; domain = "C=GB" => 4 x400.listen => expected an address; found none
[gateway]; name = "x400.a" => 4 gateway.name => must not begin with x400.
[x400]; listen = ["[::]:102"]; domain = "C=GB"; size_max = "60 MiB" => 6 x400.size_max => above limits.message_size_max
[x400]; listen = ["[::]:102"]; domain = "C=GB"; [[x400.route]]; address = "C=GB"; to = "file:.." => 8 x400.route[1].to => nor be . or ..
[x400]; listen = ["[::]:102"]; domain = "C=GB"; mta_name = "a/b" => 6 x400.mta_name => without a slash
[x400]; listen = ["[::]:102"]; domain = "C=GB"; listen_tls = ["[::]:3102"] => 6 x400.listen_tls => needs a certificate
[x400]; listen = ["[::]:25"]; domain = "C=GB" => 4 x400.listen => twice
[x400]; listen = ["[::]:102"]; domain = "C=GB"; [[x400.peer]]; name = "a"; domain = "C=FR"; password = "p"; password_file = "f" => 10 x400.peer[1].password_file => stands beside
[x400]; listen = ["[::]:102"]; domain = "C=GB"; [[x400.peer]]; name = "a"; domain = "C=FR"; password = "p"; nameless = "yes" => 10 x400.peer[1].nameless => stands beside password
[x400]; listen = ["[::]:102"]; domain = "C=GB"; [delivery]; local = "maildir"; [[x400.route]]; address = "C=GB"; to = "store:a" => 10 x400.route[1].to => needs delivery.local = "store"
[x400]; listen = ["[::]:102"]; domain = "C=GB"; [[x400.gateway]]; name = "a"; [[x400.gateway]]; name = "a" => 9 x400.gateway[2].name => found a twice
[x400]; listen = ["[::]:102"]; domain = "C=GB"; [[x400.peer]]; name = "a"; domain = "C=FR"; addresses = ["mx"] => 9 x400.peer[1].addresses => expected a host
"#

a_password_needs_a_user_one_place_and_encryption: r#"
[[route]]; domain = "a.b"; next_hop = "c.d"; username = "u" => 6 route[1].username => needs password or password_file
[[route]]; domain = "a.b"; next_hop = "c.d"; username = "u"; password = "p" => 6 route[1].username => needs tls = "required"
[[route]]; domain = "a.b"; next_hop = "c.d"; username = "u"; password_file = "secret" => 6 route[1].username => needs tls = "required"
[[route]]; domain = "a.b"; next_hop = "c.d"; username = "u"; password_file = "secret"; tls = "required"; password = "p" => 7 route[1].password_file => beside password
[[route]]; domain = "a.b"; next_hop = "c.d"; password_file = "p" => 6 route[1].password_file => needs `username`
"#

sources_have_names_that_exist_and_addresses_of_their_family: r#"
[[route]]; domain = "a.b"; next_hop = "c.d"; source = "x" => 6 route[1].source => no [[source]] named "x"
[delivery]; source = "x" => 4 delivery.source => no [[source]]
[[source]]; name = "a"; [[source]]; name = "a" => 6 source[2].name => stands twice
[[source]]; name = "a"; ipv4 = "::1" => 5 source[1].ipv4 => expected an IPv4 address
[[source]]; name = "a"; ipv6 = "192.0.2.1" => 5 source[1].ipv6 => expected an IPv6 address
"#

accounts_on_the_nodes_are_told_apart: r#"
[[spool.account]]; name = "default"; secret = "k" => 4 spool.account[1].name => spool.secret
[[spool.account]]; name = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"; secret = "k" => 4 spool.account[1].name => 32 octets
[[spool.account]]; name = "a"; secret = "k"; [[spool.account]]; name = "a"; secret = "l" => 7 spool.account[2].name => stands twice
[[spool.account]]; name = "a"; secret = "k"; [[spool.account]]; name = "b"; secret = "k" => 8 spool.account[2].secret => proves another account
[spool]; readers = ["a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a"] => 4 spool.readers => more than 16
[spool]; adopters = ["nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"] => 4 spool.adopters => 32 octets
"#

a_queue_names_its_readers_once: r#"
[[spool.queue]]; name = "q"; readers = [] => 5 spool.queue[1].readers => expected at least one account
[[spool.queue]]; name = "q"; readers = ["a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a","a"] => 5 spool.queue[1].readers => more than 16
[[spool.queue]]; name = "q"; readers = ["nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"] => 5 spool.queue[1].readers => 32 octets
[[spool.queue]]; name = "q"; readers = ["a"]; [[spool.queue]]; name = "q"; readers = ["b"] => 7 spool.queue[2].name => stands twice
"#

certificates_of_nodes_are_whole: r#"
[[spool.node]]; name = "a"; listen = "127.0.0.1:2600"; tls = "required" => 6 spool.node[1].tls => [spool.tls]
[spool.tls]; certificate = "c"; key = "k" => 3 spool.tls.ca => missing
"#

a_cluster_says_what_it_lacks: r#"
[cluster]; register = "etcd"; [cluster.etcd]; endpoints = [] => 6 cluster.etcd.endpoints => has 0, wanted are 1 to 16
[cluster]; register = "etcd"; [cluster.etcd]; endpoints = ["httpx://a:1"] => 6 cluster.etcd.endpoints => begins neither
[cluster]; register = "etcd"; [cluster.etcd]; endpoints = ["http://a"] => 6 cluster.etcd.endpoints => is not http://HOST:PORT
[cluster]; register = "etcd"; [cluster.etcd]; endpoints = ["https://a:1/v3"] => 6 cluster.etcd.endpoints => is not https://HOST:PORT
[cluster]; register = "etcd"; [cluster.etcd]; endpoints = ["http://192.0.2.1:2379"]; user = "a" => 7 cluster.etcd.user => needs cluster.etcd.password_file
[cluster]; register = "etcd"; [cluster.etcd]; endpoints = ["http://192.0.2.1:2379"]; password_file = "a" => 7 cluster.etcd.password_file => needs cluster.etcd.user
[cluster]; register = "etcd"; [cluster.etcd]; endpoints = ["http://192.0.2.1:2379"]; key = "a" => 7 cluster.etcd.key => needs cluster.etcd.certificate
[cluster]; register = "etcd"; [cluster.etcd]; endpoints = ["http://192.0.2.1:2379"]; user = "a"; password_file = "a" => 7 cluster.etcd.user => needs https
[cluster]; register = "etcd" => 4 cluster.register => needs [cluster.etcd]
[cluster.etcd]; endpoints = ["http://a:1"] => 4 cluster.etcd.endpoints => has no effect
[cluster]; lease = "3s"; skew = "4s" => 5 cluster.skew => is longer than cluster.lease (3s)
"#

limits_of_destinations_name_one_kind_once: r#"
[[delivery.destination]]; rate = "1/1s" => 3 delivery.destination[1].domain => must be given
[[delivery.destination]]; domain = "a.b"; mx = "a.b" => 5 delivery.destination[1].mx => stands beside domain
[[delivery.destination]]; next_hop = "mx" => 4 delivery.destination[1].next_hop => expected a next hop
[[delivery.destination]]; mx = "a.b"; in_order = "yes" => 5 delivery.destination[1].in_order => not for hosts
[[delivery.destination]]; domain = "a.b"; in_order = "yes"; connections_max = 2 => 6 delivery.destination[1].connections_max => must be 1
[[delivery.destination]]; mx = "a.b"; burst = 2 => 5 delivery.destination[1].burst => needs `rate`
[[delivery.destination]]; domain = "a.b"; [[delivery.destination]]; domain = "a.b" => 6 delivery.destination[2].domain => is the same in delivery.destination[1]
"#

judgement_values_say_what_is_allowed: r#"
[judging]; tag_at = "off" => 4 judging.tag_at => "off": expected a number from -1000 to 1000 such as 7.5, with at most two decimals, or "never"
[judging]; tag_at = 1000.01 => 4 judging.tag_at => 1000.01": expected a number from -1000 to 1000
[judging]; tag_at = 1.005 => 4 judging.tag_at => at most two decimals
[judging]; tag_at = 1e1 => 4 judging.tag_at => at most two decimals
[judging]; tag_at = nan => 4 judging.tag_at => at most two decimals
[judging]; tag_at = 0x5 => 4 judging.tag_at => at most two decimals
[judging]; tag_at = true => 4 judging.tag_at => or "never"; found true or false
[judging]; dmarc = "reject" => 4 judging.dmarc => expected one of "score", "follow"
[judging]; virus = "defer" => 4 judging.virus => expected one of "accept", "tag", "quarantine", "reject"
[judging]; quarantine_keep = "59m" => 4 judging.quarantine_keep => from 1h to 365d
[judging]; quarantine_digest = "weekly" => 4 judging.quarantine_digest => expected one of "off", "daily"
[judging]; many_recipients = 1 => 4 judging.many_recipients => a number from 2 to 100000
[judging]; allow_senders = ["<a@b>"] => 4 judging.allow_senders => without angle brackets
[judging]; trusted_arc_sealers = ["a b"] => 4 judging.trusted_arc_sealers => expected a host name
[judging]; [judging.weights]; SPF_FIAL = 1 => 5 judging.weights.SPF_FIAL => the nearest known one is SPF_FAIL
[judging]; [judging.weights]; SPF_FAIL = "1" => 5 judging.weights.SPF_FAIL => expected a number from -1000 to 1000 such as 2.5, with at most two decimals; found a string
[judging]; [judging.weights]; SPF_FAIL = -1000.5 => 5 judging.weights.SPF_FAIL => a number from -1000 to 1000
[judging]; [judging.limits]; depth_max = 51 => 5 judging.limits.depth_max => from 1 to 50
[judging]; [[judging.policy]]; recipients = ["<>"] => 5 judging.policy[1].recipients => expected an address or a domain
[judging]; [[judging.filter]]; name = "a/b" => 5 judging.filter[1].name => must not hold a slash
[judging]; [[judging.attachment]]; verdict = "tag"; names = [""] => 6 judging.attachment[1].names => expected 1 to 255 bytes
[judging]; [[judging.attachment]]; verdict = "tag"; names = ["*.exe."] => 6 judging.attachment[1].names => ends in neither a dot nor a space
[judging]; [[judging.attachment]]; verdict = "tag"; types = ["zip"] => 6 judging.attachment[1].types => expected a media type such as
[judging]; [[judging.attachment]]; verdict = "tag"; types = ["*/zip"] => 6 judging.attachment[1].types => expected a media type such as
[judging]; [[judging.attachment]]; verdict = "tag"; types = ["a/"] => 6 judging.attachment[1].types => expected a media type such as
[judging]; [[judging.attachment]]; names = ["a"] => 4 judging.attachment[1].verdict => is missing
"#

contradictions_of_a_judgement: r#"
[judging]; quarantine_at = 4 => 4 judging.quarantine_at => expected at least tag_at, which is 5.0; found 4.0
[judging]; reject_at = 6; defer_at = 7 => 4 judging.reject_at => expected at least defer_at, which is 7.0; found 6.0
[judging]; tag_at = "never"; defer_at = 3; reject_at = 2.99 => 6 judging.reject_at => which is 3.0; found 2.99
[judging]; reject_at = 9; [[judging.policy]]; recipients = ["a.b"]; quarantine_at = 10 => 5 judging.policy[1].reject_at => expected at least quarantine_at, which is 10.0; found 9.0
[judging]; [[judging.policy]]; recipients = [] => 5 judging.policy[1].recipients => expected at least one recipient
[judging]; [[judging.policy]]; recipients = ["a.b", "A.b"] => 5 judging.policy[1].recipients => "a.b" stands in judging.policy[1] as well
[judging]; [[judging.policy]]; recipients = ["a.b"]; [[judging.policy]]; recipients = ["a.b"] => 7 judging.policy[2].recipients => "a.b" stands in judging.policy[1] as well
[judging]; [[judging.attachment]]; verdict = "tag" => 4 judging.attachment[1] => expected names or types
[judging]; [[judging.filter]]; name = "a b" => 5 judging.filter[1].name => there is no [[filter]] named "a b"
[[filter]]; name = "a"; kind = "milter"; address = "unix:/a"; [judging]; [[judging.filter]]; name = "b" => 9 judging.filter[1].name => there is no [[filter]] named "b", the nearest known one is "a"
[[filter]]; name = "a"; kind = "milter"; address = "unix:/a"; [judging]; [[judging.filter]]; name = "a"; [[judging.filter]]; name = "a" => 11 judging.filter[2].name => "a" stands twice
[judging]; allow_senders = ["a.b"]; block_senders = ["c.d", "a.b"] => 5 judging.block_senders => "a.b" stands in judging.allow_senders as well
[judging]; allow_networks = ["::1"]; block_networks = ["::1"] => 5 judging.block_networks => stands in judging.allow_networks as well
"#

reports_need_their_facts_and_an_address: r#"
[reports]; tls = "weekly" => 4 reports.tls => expected one of "off", "daily"
[reports]; tls = "daily" => 4 reports.tls => needs reports.contact
[reports]; dmarc = "weekly" => 4 reports.dmarc => expected one of "off", "daily"
[reports]; contact = "example.org" => 4 reports.contact => expected an address such as
[reports]; contact = "a b@example.org" => 4 reports.contact => expected an address such as
[reports]; from = "<a@example.org>" => 4 reports.from => expected an address such as
[reports]; from = "a@-b" => 4 reports.from => expected a host name
[front]; [judging]; [reports]; dmarc = "daily" => 6 reports.dmarc => needs reports.contact
[front]; [reports]; dmarc = "daily"; contact = "a@b.c" => 5 reports.dmarc => needs [judging]
[judging]; [reports]; dmarc = "daily"; contact = "a@b.c" => 5 reports.dmarc => needs [front]
"#

filters_outside_their_form: r#"
[[filter]]; name = "a"; kind = "rspamd" => 3 filter[1].address => is missing
[[filter]]; name = "a"; kind = "spamd"; address = "[::1]:1" => 5 filter[1].kind => expected one of "rspamd", "clamd", "milter"
[[filter]]; name = "a"; kind = "milter"; address = "/run/a" => 6 filter[1].address => expected "unix:/run/a" for a Unix socket
[[filter]]; name = "a"; kind = "milter"; address = "unix:a" => 6 filter[1].address => expected an absolute path
[[filter]]; name = "a"; kind = "milter"; address = "::1:25" => 6 filter[1].address => in brackets
[[filter]]; name = "a"; kind = "milter"; address = "[::1]:1"; timeout = "6m" => 7 filter[1].timeout => expected a span from
[[filter]]; name = "a"; kind = "milter"; address = "[::1]:1"; connections_max = 0 => 7 filter[1].connections_max => from 1 to 1000
[[filter]]; name = "a"; kind = "milter"; address = "[::1]:1"; when_unavailable = "reject" => 7 filter[1].when_unavailable => expected one of "defer", "accept"
"#

contradictions_of_filters: r#"
[[filter]]; name = "a b"; kind = "milter"; address = "[::1]:1" => 4 filter[1].name => expected at most 64 letters, digits
[[filter]]; name = "a"; kind = "milter"; address = "[::1]:1"; [[filter]]; name = "a"; kind = "clamd"; address = "[::1]:2" => 8 filter[2].name => "a" stands twice
[[filter]]; name = "a"; kind = "clamd"; address = "[::1]:1"; password_file = "p" => 7 filter[1].password_file => needs kind = "rspamd"
[[filter]]; name = "a"; kind = "milter"; address = "[::1]:1"; learn_address = "[::1]:2" => 7 filter[1].learn_address => needs kind = "rspamd"
[[filter]]; name = "a"; kind = "milter"; address = "[::1]:1"; timeout = "4m"; [[filter]]; name = "b"; kind = "clamd"; address = "[::1]:1"; timeout = "61s" => 12 filter[2].timeout => expected timeouts of at most 5m together
"#

double_keys_have_lines: r#"
data = "a"; data = "b" => 4  => duplicate key: data
"#
}

#[test]
fn rates_outside_their_form_are_refused() {
    for rate in ["5", "0/1s", "1000001/1s", "5/0s", "5/25h", "/1s", "5/"] {
        let text = format!("[[delivery.destination]]\nmx = \"a.b\"\nrate = \"{rate}\"\n");
        one_error(&text, 5, "delivery.destination[1].rate", "");
    }
}

#[test]
fn long_values_and_lists_are_refused() {
    let hosts = "\"a.b\",".repeat(1_001);
    let endpoints = "\"http://a:1\",".repeat(17);
    let path = "x".repeat(108);
    let filter = |n: u8| {
        format!("[[filter]]\nname = \"f{n}\"\nkind = \"rspamd\"\naddress = \"[::1]:{n}\"\n")
    };
    for (file, line, key, words) in [
        (
            format!("[acme]\ndomains = [{hosts}]\n"),
            4,
            "acme.domains",
            "at most 1000",
        ),
        (
            format!("[cluster]\nregister = \"etcd\"\n[cluster.etcd]\nendpoints = [{endpoints}]\n"),
            6,
            "cluster.etcd.endpoints",
            "has 17",
        ),
        (
            format!("[control]\nsocket = \"/{path}\"\n"),
            4,
            "control.socket",
            "107 octets",
        ),
        (
            format!("[[filter]]\nname = \"a\"\nkind = \"milter\"\naddress = \"unix:/{path}\"\n"),
            6,
            "filter[1].address",
            "107 octets",
        ),
        (
            (1..18).map(filter).collect(),
            4 + 4 * 16,
            "filter[17].name",
            "at most 16 sections; found 17",
        ),
    ] {
        one_error(&file, line, key, words);
    }
}

#[test]
fn what_only_seems_to_contradict_is_accepted() {
    let login = "[[route]]\ndomain = \"a.b\"\nnext_hop = \"c.d\"\nusername = \"u\"\n";
    for file in [
        &format!("{login}password = \"p\"\ntls = \"required\"\n"),
        // 0 is any free port.
        "[smtp]\nlisten = [\"[::1]:0\", \"[::1]:0\"]\n",
        "[auth]\nplaintext_networks = [\"::1\"]\n[submission]\nlisten = [\"[::1]:587\"]\n",
    ] {
        assert!(parse(file).is_ok(), "{file}: {:?}", parse(file));
    }
}
