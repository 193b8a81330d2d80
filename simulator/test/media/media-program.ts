/**
 * A program of another author: Baileys with its default options, and nothing of this project. It trusts the media host through
 * `NODE_EXTRA_CA_CERTS`. It prints its QR code, sends a file to the number given, downloads every file that it receives, and
 * prints the SHA-256.
 */
import { createHash } from 'node:crypto'
import makeWASocket, { downloadMediaMessage, initAuthCreds } from 'baileys'
import { memoryKeys } from '../baileys-client.ts'
import { createSilentLogger } from '../silent-logger.ts'

const [url = '', to = ''] = process.argv.slice(2)
const auth = { creds: initAuthCreds(), keys: memoryKeys(new Map()) }
console.info = () => undefined

function print(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

function connect(): void {
  const sock = makeWASocket({ waWebSocketUrl: url, auth, logger: createSilentLogger() })
  sock.ev.on('creds.update', update => void Object.assign(auth.creds, update))
  sock.ev.on('connection.update', async ({ connection, qr }) => {
    if (qr) print({ qr })
    if (connection === 'close') connect()
    if (connection === 'open') await sock.sendMessage(to, { document: Buffer.from('contents'), mimetype: 'text/plain' })
  })
  sock.ev.on('messages.upsert', async ({ messages }) => {
    for (const message of messages) {
      if (message.key.fromMe) continue
      const bytes = await downloadMediaMessage(message, 'buffer', {})
      print({ sha256: createHash('sha256').update(bytes).digest('hex') })
    }
  })
}

connect()
