# Reads what the signer prints, and prints the verdict of Mail::DKIM about each message.
use strict;
use warnings;
use Mail::DKIM::ARC::Verifier;
use Mail::DKIM::DNS;
use Mail::DKIM::Verifier;
use Net::DNS;

package Records;
my %texts;
sub new { return bless {}, shift }

sub send {
    my ( $self, $name, $type ) = @_;
    my $answer = Net::DNS::Packet->new( $name, 'TXT' );
    my $text = $texts{ lc $name };
    if ( defined $text ) {
        my $record = Net::DNS::RR->new(
            name    => $name,
            type    => 'TXT',
            ttl     => 60,
            txtdata => [ $text =~ /(.{1,200})/sg ],
        );
        $answer->push( answer => $record );
        $answer->header->rcode('NOERROR');
    }
    else {
        $answer->header->rcode('NXDOMAIN');
    }
    return $answer;
}

package main;
Mail::DKIM::DNS::resolver( Records->new );
while ( my $line = <STDIN> ) {
    chomp $line;
    my ( $kind, $word, $hex ) = split / /, $line;
    if ( $kind eq 'record' ) {
        $texts{ lc $word } = pack 'H*', $hex;
        next;
    }
    my $message = pack 'H*', $hex;
    my $class = $kind eq 'arc' ? 'Mail::DKIM::ARC::Verifier' : 'Mail::DKIM::Verifier';
    my $result = eval {
        my $verifier = $class->new;
        $verifier->PRINT($message);
        $verifier->CLOSE;
        $verifier->result;
    };
    my $unknown = $message =~ /a=ed25519/ && !Mail::DKIM::Signature->can('new_ed25519');
    print $unknown ? 'unknown' : defined $result ? $result : 'error', "\n";
}
