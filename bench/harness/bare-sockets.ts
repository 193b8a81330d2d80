/** Sockets of bare Baileys with its default options. Credentials and Signal keys are in memory. */
import {
  type AnyMessageContent,
  type AuthenticationState,
  type BinaryNode,
  generateMessageIDV2,
  initAuthCreds,
  makeWASocket,
  type SignalDataTypeMap,
  type WASocket,
} from 'baileys'

const RESTART_REQUIRED = 515
/** libsignal prints whole sessions. */
const mute = () => undefined
Object.assign(console, { log: mute, info: mute, warn: mute, error: mute })

const silent = { level: 'silent', child: () => silent, trace: mute, debug: mute, info: mute, warn: mute, error: mute }

/** The linked and connected accounts of this process. */
export const open: WASocket[] = []
/** Resolved by WhatsApp's acknowledgement of the message with that ID. */
const unacknowledged = new Map<string, () => void>()

function memoryAuth(): AuthenticationState {
  const kept = new Map<string, unknown>()
  return {
    creds: initAuthCreds(),
    keys: {
      get<T extends keyof SignalDataTypeMap>(type: T, ids: string[]) {
        const found: Record<string, SignalDataTypeMap[T]> = {}
        for (const id of ids) {
          const value = kept.get(`${type}/${id}`)
          if (value !== undefined) found[id] = value as SignalDataTypeMap[T]
        }
        return found
      },
      set(changes) {
        for (const [type, byId] of Object.entries(changes)) {
          for (const [id, value] of Object.entries(byId)) {
            if (value === null) kept.delete(`${type}/${id}`)
            else kept.set(`${type}/${id}`, value)
          }
        }
      },
    },
  }
}

function openSocket(url: string, auth: AuthenticationState): WASocket {
  const socket = makeWASocket({ waWebSocketUrl: url, auth, logger: silent, fireInitQueries: false })
  socket.ev.on('creds.update', update => Object.assign(auth.creds, update))
  socket.ws.on('CB:ack,class:message', ({ attrs }: BinaryNode) => {
    const id = attrs['id'] ?? ''
    unacknowledged.get(id)?.()
    unacknowledged.delete(id)
  })
  return socket
}

let showQr: (qr: string) => void = mute
let whenLinked = Promise.resolve()

/** Resolves with the QR text for a simulated phone. Then call `linked`. */
export function link(url: string): Promise<string> {
  const auth = memoryAuth()
  const socket = openSocket(url, auth)
  const qr = new Promise<string>(resolve => {
    showQr = resolve
  })
  whenLinked = new Promise((resolve, reject) => {
    socket.ev.on('connection.update', update => {
      if (update.qr) showQr(update.qr)
      if (update.connection !== 'close') return
      const error = update.lastDisconnect?.error
      if (statusOf(error) !== RESTART_REQUIRED) return reject(error)
      const login = openSocket(url, auth)
      login.ev.on('connection.update', ({ connection, lastDisconnect }) => {
        if (connection === 'close') reject(lastDisconnect?.error)
        if (connection !== 'open') return
        open.push(login)
        resolve()
      })
    })
  })
  return qr
}

/** Baileys' errors come from the boom library. */
function statusOf(error: unknown): number | undefined {
  return (error as { output?: { statusCode: number } } | undefined)?.output?.statusCode
}

export const linked = () => whenLinked

/** Resolves when WhatsApp has acknowledged the text. */
export function sendText(socket: WASocket, contact: string, text: string): Promise<void> {
  return send(socket, contact, { text })
}

/** Uploads a file and sends it. Resolves when WhatsApp has acknowledged the message. */
export function sendDocument(socket: WASocket, contact: string, path: string): Promise<void> {
  return send(socket, contact, { document: { url: path }, mimetype: 'application/octet-stream', fileName: 'file.bin' })
}

async function send(socket: WASocket, contact: string, content: AnyMessageContent): Promise<void> {
  const id = generateMessageIDV2()
  const acknowledged = new Promise<void>(resolve => unacknowledged.set(id, resolve))
  await socket.sendMessage(`${contact}@s.whatsapp.net`, content, { messageId: id })
  await acknowledged
}
