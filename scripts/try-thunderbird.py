#!/usr/bin/env python3
"""Lets Thunderbird read, search, file and send mail of a server, in a display of its own.

    scripts/try-thunderbird.py --imap 127.0.0.1:2143 --smtp 127.0.0.1:2525 \\
        --user alice@demo.test --password demo --shots FOLDER
    ... --tls starttls --ca ca.pem        both ports by STARTTLS; `--tls implicit`: within TLS from the beginning

The certificate of the authority (`--ca`) is put among those that the profile trusts, as a user would do it. Needs thunderbird, Xvfb (xvfb) and import (imagemagick) for pictures of what is on the screen. The mailbox should
have some messages, one of them with WORD (`--word`) in its text. Thunderbird is told what to do through Marionette, in
the way of its own buttons and menus; what it did is waited for by what it shows, and told line by line. Exit code 0:
all steps did what they should; 77: a program is not installed.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

PATIENCE = 300

# What the settings of both servers say of TLS: none, STARTTLS or nothing, from the beginning.
TLS = {"none": 0, "starttls": 2, "implicit": 3}

PREFS = {
    "app.donation.eoy.version.viewed": 9999,
    "app.update.auto": False,
    "browser.safebrowsing.downloads.enabled": False,
    "datareporting.healthreport.uploadEnabled": False,
    "datareporting.policy.dataSubmissionPolicyBypassNotification": True,
    "extensions.update.enabled": False,
    "mail.account.account1.identities": "id1",
    "mail.account.account1.server": "server1",
    "mail.account.account2.server": "server2",
    "mail.accountmanager.accounts": "account1,account2",
    "mail.accountmanager.defaultaccount": "account1",
    "mail.accountmanager.localfoldersserver": "server2",
    "mail.biff.show_alert": False,
    "mail.identity.id1.compose_html": False,
    "mail.identity.id1.fullName": "Alice",
    "mail.identity.id1.smtpServer": "smtp1",
    "mail.identity.id1.valid": True,
    "mail.provider.suppress_dialog_on_startup": True,
    "mail.rights.version": 1,
    "mail.server.server1.authMethod": 3,
    "mail.server.server1.check_new_mail": False,
    "mail.server.server1.login_at_startup": False,
    "mail.server.server1.name": "under test",
    "mail.server.server1.type": "imap",
    "mail.server.server2.hostname": "Local Folders",
    "mail.server.server2.name": "Local Folders",
    "mail.server.server2.type": "none",
    "mail.server.server2.userName": "nobody",
    "mail.shell.checkDefaultClient": False,
    "mail.smtpserver.smtp1.authMethod": 3,
    "mail.smtpservers": "smtp1",
    "mail.spotlight.firstRunDone": True,
    "mail.SpellCheckBeforeSend": False,
    "mail.warn_on_send_accel_key": False,
    "mailnews.mark_message_read.auto": True,
    "mailnews.start_page.enabled": False,
    "marionette.port": 0,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.proxy.type": 0,
    "services.settings.server": "data:,#",
    "toolkit.telemetry.enabled": False,
}

# What every step begins with: `done(value)` ends it.
PRELUDE = """
const done = arguments[arguments.length - 1];
const fail = error => done({error: String(error) + ' ' + (error.stack || '')});
const {MailServices} = ChromeUtils.importESModule('resource:///modules/MailServices.sys.mjs');
const mail = Services.wm.getMostRecentWindow('mail:3pane');
const tabmail = () => mail.document.getElementById('tabmail');
const pane = () => tabmail().currentAbout3Pane;
const server = () => MailServices.accounts.getAccount('account1').incomingServer;
const root = () => server().rootFolder;
const named = name => root().descendants.find(folder => folder.name.toLowerCase() == name.toLowerCase());
const until = async (what, ready) => {
  const end = Date.now() + 240000;
  for (;;) {
    const value = await ready();
    if (value) return value;
    if (Date.now() > end) throw new Error(what + ' did not happen');
    await new Promise(resolve => mail.setTimeout(resolve, 100));
  }
};
const subjects = () => {
  const view = pane().gDBView;
  const found = [];
  for (let row = 0; view && row < view.rowCount; row++) found.push(view.getMsgHdrAt(row).mime2DecodedSubject);
  return found;
};
const select = async subject => {
  const row = await until('a row ' + subject, () => subjects().indexOf(subject) + 1) - 1;
  pane().threadTree.selectedIndex = row;
  return pane().gDBView.getMsgHdrAt(row);
};
(async () => { %s })().then(done, fail);
"""


class Marionette:
    """A session that runs scripts with the program's own rights."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.unread = b""
        self.number = 0
        self.receive()
        self.command("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {}}})
        self.command("Marionette:SetContext", {"value": "chrome"})
        self.command("WebDriver:SetTimeouts", {"script": PATIENCE * 1000})

    def receive(self):
        while b":" not in self.unread:
            self.more()
        head, self.unread = self.unread.split(b":", 1)
        while len(self.unread) < int(head):
            self.more()
        text, self.unread = self.unread[: int(head)], self.unread[int(head) :]
        return json.loads(text)

    def more(self):
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise ConnectionError("thunderbird ended")
        self.unread += piece

    def command(self, name, parameters):
        self.number += 1
        text = json.dumps([0, self.number, name, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(text), text))
        _, number, error, result = self.receive()
        assert number == self.number, "answers come in order"
        if error:
            raise RuntimeError(f"{name}: {error.get('message', error)}")
        return result

    def run(self, script, *values):
        result = self.command(
            "WebDriver:ExecuteAsyncScript",
            {"script": PRELUDE % script, "args": list(values), "newSandbox": True, "sandbox": "system"},
        )["value"]
        if isinstance(result, dict) and "error" in result:
            raise RuntimeError(result["error"])
        return result


class Desk:
    """A display, a profile and the program."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.children = arguments, folder, []
        profile = os.path.join(folder, "profile")
        os.makedirs(profile)
        host, port = arguments.imap.rsplit(":", 1)
        smtp_host, smtp_port = arguments.smtp.rsplit(":", 1)
        prefs = PREFS | {
            "mail.identity.id1.fcc_folder": f"imap://{urllib.parse.quote(arguments.user)}@{host}/Sent",
            "mail.identity.id1.useremail": arguments.user,
            "mail.server.server1.hostname": host,
            "mail.server.server1.port": int(port),
            "mail.server.server1.socketType": TLS[arguments.tls],
            "mail.server.server1.userName": arguments.user,
            "mail.server.server2.directory-rel": "[ProfD]Mail/Local Folders",
            "mail.smtpserver.smtp1.hostname": smtp_host,
            "mail.smtpserver.smtp1.port": int(smtp_port),
            "mail.smtpserver.smtp1.try_ssl": TLS[arguments.tls],
            "mail.smtpserver.smtp1.username": arguments.user,
        }
        with open(os.path.join(profile, "user.js"), "w") as file:
            for name, value in prefs.items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        self.display = self.start_display()
        environment = {
            "DISPLAY": self.display,
            "HOME": folder,
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "MOZ_CRASHREPORTER_DISABLE": "1",
        }
        self.log = open(os.path.join(folder, "thunderbird.log"), "w")
        command = ["thunderbird", "--no-remote", "--profile", profile]
        command += ["--marionette", "--remote-allow-system-access"]
        child = subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log)
        self.children.append(child)
        self.marionette = Marionette(self.wait_port(profile, child))

    def start_display(self):
        read, write = os.pipe()
        command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1400x900x24", "-nolisten", "tcp"]
        child = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
        self.children.append(child)
        os.close(write)
        with os.fdopen(read) as file:
            number = file.readline().strip()
        if not number:
            raise RuntimeError("Xvfb gives no display")
        return ":" + number

    def wait_port(self, profile, child):
        path = os.path.join(profile, "MarionetteActivePort")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and child.poll() is None:
            try:
                with open(path) as file:
                    text = file.read().strip()
                if text:
                    return int(text)
            except FileNotFoundError:
                pass
            time.sleep(0.1)
        with open(self.log.name) as file:
            raise RuntimeError("thunderbird does not listen:\n" + file.read()[-4000:])

    def picture(self, name):
        if not self.arguments.shots or not shutil.which("import"):
            return
        path = os.path.join(self.arguments.shots, f"{name}.png")
        environment = os.environ | {"DISPLAY": self.display}
        time.sleep(1)
        subprocess.run(["import", "-window", "root", path], env=environment, check=False)

    def close(self):
        for child in reversed(self.children):
            child.terminate()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def steps(desk):
    """What is done, one after the other; each tells what was seen."""
    arguments, run = desk.arguments, desk.marionette.run

    def step(name, script, *values):
        seen = run(script, *values)
        print(f"{name}: {json.dumps(seen, ensure_ascii=False)}", flush=True)
        desk.picture(name.replace(" ", "-"))
        return seen

    if arguments.ca:
        with open(arguments.ca) as file:
            lines = [line for line in file.read().splitlines() if line and not line.startswith("-----")]
        step(
            "trust",
            """
            const store = Cc['@mozilla.org/security/x509certdb;1'].getService(Ci.nsIX509CertDB);
            store.addCertFromBase64(arguments[0], 'C,,');
            return store.getCerts().length;
            """,
            "".join(lines),
        )
    secrets = [f"imap://{arguments.imap.rsplit(':', 1)[0]}", f"smtp://{arguments.smtp.rsplit(':', 1)[0]}"]
    run(
        """
        for (const origin of arguments[0]) {
          const login = Cc['@mozilla.org/login-manager/loginInfo;1'].createInstance(Ci.nsILoginInfo);
          login.init(origin, null, origin, arguments[1], arguments[2], '', '');
          await Services.logins.addLoginAsync(login);
        }
        """,
        secrets,
        arguments.user,
        arguments.password,
    )
    folders = step(
        "folders",
        """
        if (server().socketType != arguments[0]) throw new Error('other TLS than was asked for');
        await until('the window', () => pane() && pane().folderTree);
        server().getNewMessages(root(), mail.msgWindow, null);
        await until('the folders', () => named('Inbox') && named('Inbox').getTotalMessages(false) > 0);
        return root().descendants.map(folder => folder.name + ' ' + folder.getTotalMessages(false)).sort();
        """,
        TLS[arguments.tls],
    )
    assert any(name.lower().startswith("inbox ") for name in folders), folders
    listed = step(
        "list",
        """
        pane().displayFolder(named('Inbox').URI);
        return await until('the list', () => {
          const found = subjects();
          return found.length > 0 && found.length == named('Inbox').getTotalMessages(false) && found;
        });
        """,
    )
    first = listed[0]
    text = step(
        "read",
        """
        const message = await select(arguments[0]);
        const browser = await until('the message', () => {
          const browser = pane().messageBrowser && pane().messageBrowser.contentDocument.getElementById('messagepane');
          const text = browser && browser.contentDocument && browser.contentDocument.body;
          return text && text.textContent.trim() && browser;
        });
        await until('that it is read', () => message.isRead);
        return browser.contentDocument.body.textContent.trim().slice(0, 200);
        """,
        first,
    )
    assert text, "an empty message"
    step(
        "flag",
        """
        const message = await select(arguments[0]);
        pane().commandController.doCommand('cmd_markAsFlagged');
        await until('the star', () => message.isFlagged);
        return message.mime2DecodedSubject;
        """,
        first,
    )
    found = step(
        "search",
        """
        const session = Cc['@mozilla.org/messenger/searchSession;1'].createInstance(Ci.nsIMsgSearchSession);
        session.addScopeTerm(Ci.nsMsgSearchScope.onlineMail, named('Inbox'));
        const term = session.createTerm();
        const value = term.value;
        value.attrib = Ci.nsMsgSearchAttrib.Body;
        value.str = arguments[0];
        term.value = value;
        term.attrib = Ci.nsMsgSearchAttrib.Body;
        term.op = Ci.nsMsgSearchOp.Contains;
        session.appendTerm(term);
        return await new Promise(resolve => {
          const found = [];
          session.registerListener({
            onSearchHit: message => found.push(message.mime2DecodedSubject),
            onSearchDone: () => resolve(found),
            onNewSearch: () => {},
          });
          session.search(mail.msgWindow);
        });
        """,
        arguments.word,
    )
    assert found, f"nothing found with {arguments.word}"
    step(
        "move",
        """
        if (!named('Kept')) {
          root().createSubfolder('Kept', mail.msgWindow);
          await until('the folder', () => named('Kept'));
        }
        await select(arguments[0]);
        pane().commandController.doCommand('cmd_moveMessage', named('Kept'));
        await until('that it went', () => !subjects().includes(arguments[0]));
        named('Kept').updateFolder(mail.msgWindow);
        await until('that it came', () => named('Kept').getTotalMessages(false) > 0);
        return subjects();
        """,
        first,
    )
    step(
        "delete",
        """
        await select(arguments[0]);
        pane().commandController.doCommand('cmd_delete');
        await until('that it went', () => !subjects().includes(arguments[0]));
        return await until('the bin', () => {
          const bin = root().getFolderWithFlags(Ci.nsMsgFolderFlags.Trash);
          return bin && (bin.updateFolder(mail.msgWindow), bin.getTotalMessages(false) > 0) && bin.name;
        });
        """,
        listed[1],
    )
    step(
        "send",
        """
        const fields = Cc['@mozilla.org/messengercompose/composefields;1'].createInstance(Ci.nsIMsgCompFields);
        fields.to = arguments[0];
        fields.subject = 'from Thunderbird';
        fields.body = 'Written by hand, nearly.';
        const about = Cc['@mozilla.org/messengercompose/composeparams;1'].createInstance(Ci.nsIMsgComposeParams);
        about.composeFields = fields;
        about.format = Ci.nsIMsgCompFormat.PlainText;
        about.type = Ci.nsIMsgCompType.New;
        about.identity = MailServices.accounts.getAccount('account1').defaultIdentity;
        MailServices.compose.OpenComposeWindowWithParams(null, about);
        const window = await until('a window', () => Services.wm.getMostRecentWindow('msgcompose'));
        await until('that it is ready', () => window.gMsgCompose && window.composeEditorReady !== false
          && window.document.getElementById('msgSubject').value == 'from Thunderbird');
        const button = window.document.getElementById('button-send');
        await until('that it may be sent', () => !button.disabled && !window.gWindowLocked);
        button.click();
        await until('that it left', () => window.closed);
        await until('the folder', () => named('Sent'));
        pane().displayFolder(named('Sent').URI);
        await select('from Thunderbird');
        pane().displayFolder(named('Inbox').URI);
        return named('Sent').name;
        """,
        arguments.user,
    )
    step(
        "hear of mail",
        """
        return await until('the new message', () => subjects().includes('from Thunderbird') && subjects());
        """,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--imap", required=True, metavar="HOST:PORT")
    parser.add_argument("--smtp", required=True, metavar="HOST:PORT")
    parser.add_argument("--user", required=True)
    parser.add_argument("--password", required=True)
    parser.add_argument("--word", default="hello", help="what is searched for in texts")
    parser.add_argument("--tls", choices=sorted(TLS), default="none", help="how both ports are spoken to")
    parser.add_argument("--ca", metavar="FILE", help="an authority to trust, in PEM")
    parser.add_argument("--shots", metavar="FOLDER", help="where pictures of the screen go")
    arguments = parser.parse_args()
    for program in ["thunderbird", "Xvfb"]:
        if not shutil.which(program):
            print(f"{program} is not installed")
            return 77
    if arguments.shots:
        os.makedirs(arguments.shots, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(arguments, folder)
        try:
            steps(desk)
        except Exception:
            desk.picture("failed")
            raise
        finally:
            desk.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
