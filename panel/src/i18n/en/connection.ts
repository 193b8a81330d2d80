import type { ConnectionCause } from '../../api/types.ts'

export const connection = {
  states: {
    unlinked: { name: 'Not linked', text: 'No WhatsApp number is linked yet. Link one to send and receive.' },
    linking: { name: 'Linking', text: 'Waiting for the phone.' },
    connecting: { name: 'Connecting', text: 'The phone has confirmed. The first login takes a few seconds.' },
    connected: { name: 'Connected', text: 'Messages are sent and received.' },
    reconnecting: {
      name: 'Reconnecting',
      text: 'The connection was lost a moment ago and is being reopened. Messages are still accepted and are sent as soon as it is back. No action is needed.',
    },
    disconnected: {
      name: 'Disconnected',
      text: 'There has been no connection for more than five minutes. Pombal keeps trying, and refuses messages until it is connected again. Check that the phone and this machine have internet access.',
    },
    stopped: {
      name: 'Stopped',
      text: 'The number is still linked, but Pombal has stopped reconnecting because this needs your attention. Queued messages wait.',
    },
    logged_out: {
      name: 'Logged out',
      text: 'The number was unlinked, and queued messages have failed. Link it again to continue.',
    },
  },
  lastKnown: (state: string) => `Last known: ${state}`,
  unknown: 'The service does not answer, so the connection state of this number is unknown.',
  reason: 'Reason',
  /** In English the service's own reason is shown, which is more detailed. */
  reasons: {} as Partial<Record<ConnectionCause, string>>,
  simulated: 'This WhatsApp is simulated: Pombal was started with WHATSAPP_URL. Nothing reaches real phones.',
  sameNumber: (names: string) =>
    `This number is also linked to ${names}. Each of these instances reports every message to this number. If that is not what you want, unlink it from all but one.`,
  number: 'Number',
  link: 'Link a number',
  linkAgain: 'Link again',
  othersLink: 'An operator or owner can link the number.',
  othersResume: 'An operator or owner can connect it again.',
  noCode: 'WhatsApp has not supplied a code to scan yet. Pombal keeps asking.',
  nextTry: 'Next attempt',
  resume: 'Try again now',
  exportedTitle: 'Is the other program stopped for good?',
  exportedText:
    'The session was exported. If two programs use it, they destroy it, and the number has to be linked again.',
  exportedAction: 'Connect here',
  sandboxLinking: 'The simulated phone scans or types the code by itself: this takes a few seconds.',
  remedies: {
    banned:
      'WhatsApp has banned or restricted this number. Open WhatsApp on the phone: it shows the reason and lets you request a review. Try again here once it works there.',
    version_refused:
      'WhatsApp refuses the client version. Update Pombal, or set WHATSAPP_VERSION to a current version and restart. Then try again.',
    login_refused: 'WhatsApp refused the login. Check WhatsApp on the phone, then try again.',
    no_linked_devices: 'The phone does not support linked devices. Update WhatsApp on it, then try again.',
    replaced:
      'Another program opened the same session. Stop that program first, or it will happen again. Then try again here.',
    code_expired: 'Nobody scanned the code in time.',
    passkey_required:
      'WhatsApp asks this account for a passkey to link a device, and linking with a passkey is switched off. A new code will not help. WhatsApp does not always ask: try again on another day, or start Pombal with WHATSAPP_PASSKEY=on (experimental).',
    passkey_refused:
      'WhatsApp did not accept the passkey. Use the passkey of this account, in the browser or on the phone that has it. Then link again.',
    passkey_expired:
      'Nobody answered with the passkey, or confirmed the code, in time. Have the passkey at hand, then link again.',
    identity_rejected:
      'WhatsApp refuses to issue a code to the kind of device that Pombal announces, or too many codes were requested for this number. Wait an hour. If that does not help, set WHATSAPP_DEVICE to another device (such as chrome-windows) and restart. Then try again.',
    linking_unfinished:
      'The phone took the code, but WhatsApp did not complete the linking. On the phone, remove linked devices that you do not use, wait a few minutes, then try again.',
    phone_offline:
      'The phone took the code but did not confirm. Check that it is online, keep WhatsApp open on it, then try again.',
    device_limit: 'The account has too many linked devices. Remove one on the phone, then try again.',
    unreachable:
      'WhatsApp could not be reached. Check that this machine has internet access and can reach web.whatsapp.com.',
    proxy_failed:
      'The proxy of this instance does not work. Check that it runs and accepts the user name and password, or set another one under Settings.',
    sandbox_off: 'The sandbox is switched off here. Start Pombal with SANDBOX=on, then try again.',
    thread_crashed:
      'Pombal crashed several times while it worked for this number, and stopped the number to protect the others. Search the log for whatsapp.thread_died, update Pombal, then try again.',
    imported:
      'The session comes from another program. Stop that program for good: two programs with one session destroy it. Then connect here.',
    exported: 'The session was exported to another program. Connect here only if no other program uses it any more.',
  },
}

export const linking = {
  byQr: 'QR code',
  byCode: 'Pairing code',
  steps: [
    'Open WhatsApp on the phone',
    'Go to Settings → Linked devices (on Android: the three dots → Linked devices)',
    'Tap “Link a device”',
    'Point the phone at this code',
  ],
  codeSteps: [
    'Open WhatsApp on the phone',
    'Go to Settings → Linked devices → Link a device',
    'Tap “Link with phone number instead”',
    'Type this code',
  ],
  qrLabel: 'QR code to scan with WhatsApp on the phone',
  expiresIn: (seconds: number) => `A new code appears in ${seconds} s`,
  waitingForQr: 'Asking WhatsApp for a code…',
  numberLabel: 'Your number',
  numberHint: 'With the country code, digits only: 5511987654321',
  numberWrong: 'Enter 7 to 15 digits, with the country code.',
  getCode: 'Get a pairing code',
  waitingForCode: 'Asking WhatsApp for a pairing code…',
  codeLabel: 'Pairing code',
  expired: 'The code has expired',
  expiredText:
    'Nobody scanned it in time. The phone must be online. If it said that it could not link a device, it may have too many linked devices: remove one. Then request a new code.',
  failed: 'The number could not be linked',
  newCodeAsked: 'WhatsApp asked for a new code. The previous code no longer works.',
  newCode: 'Show a new code',
  lookingAfter: 'The phone must be online. It may ask for your fingerprint.',
}

/** The steps in which the account's passkey is used. */
export const passkey = {
  title: 'WhatsApp asks for the passkey of this account',
  text: 'Browsers let this passkey be used only on WhatsApp’s own page. Run a small program there: it uses the passkey and shows an answer, which you paste here. The program reads nothing else there and sends nothing anywhere.',
  experimental: 'This is experimental: it has never been tried against WhatsApp’s servers.',
  timeLeft: (minutes: number) => `Time left: ${minutes} min`,
  steps: [
    'Copy this program',
    'Open web.whatsapp.com in another tab of a browser that can use the passkey. You need not sign in there',
    'Press F12 and choose Console, paste the program, and press Enter. Browsers warn about this for good reason: read the program first',
    'Press “Use the passkey” in the box that appears, and copy the answer',
    'Paste the answer here',
  ],
  program: 'Program for WhatsApp’s page',
  answer: 'Answer of the passkey',
  answerHint:
    'It works once, for this request. Pombal passes it on; until then it is kept encrypted, for at most a minute.',
  answerWrong: 'This is not the answer. Copy all of it from the box on WhatsApp’s page.',
  send: 'Send the answer',
  refused:
    'WhatsApp did not accept the answer. Use the passkey of this account, and this new program: the previous program no longer works.',
  sent: 'WhatsApp is checking the answer. Keep WhatsApp open on the phone…',
  compare: 'Does the phone show this code too?',
  compareText: 'If the codes differ, somebody may be intercepting the connection.',
  same: 'Yes, both are the same',
  differ: 'No, cancel',
  differHint: 'If they differ, close this page and do not confirm. The linking then ends by itself.',
  others: 'An operator has to use the passkey.',
  box: {
    title: 'A device is being linked to your WhatsApp account',
    asks: 'It asks for your passkey:',
    warning: 'Continue only if you are linking your number there now.',
    use: 'Use the passkey',
    copy: 'Copy the answer',
    copied: 'Copied. Paste it on the page you came from.',
    close: 'Close',
    failed: 'The passkey could not be used. Try again, or use the browser or phone that has it.',
    elsewhere: 'Run this program on https://web.whatsapp.com.',
  },
}

export const health = {
  title: 'Health',
  hint: 'The last activity from WhatsApp, and why connections ended in the last 24 hours.',
  never: 'none yet',
  none: 'none',
  lastTime: 'last',
  lastFrame: 'Last activity',
  acknowledgement: 'Last message acknowledged',
  tookTime: (time: string) => `after ${time}`,
  undecryptable: 'Messages that could not be decrypted',
  proxy: 'Proxy',
  restriction: 'Restriction',
  restrictedUntil: 'WhatsApp does not let the number start new chats until',
  restrictedForNow: 'WhatsApp does not let the number start new chats; Pombal tries again at',
  closes: 'Connections ended',
  close: (code: number, count: number) => `${count} × code ${code}`,
  codes: {
    401: 'logged out',
    403: 'refused, perhaps banned',
    405: 'version refused',
    408: 'no answer',
    428: 'connection lost',
    440: 'opened elsewhere',
    500: 'ended without a reason',
    503: 'WhatsApp is not available',
    515: 'requested by WhatsApp, as always after linking',
  },
}
