import { createServer, type Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import type { TlsCertificate } from '../../simulator/src/wire/tls-certificate.ts'

/** The first message of a client that wants TLS (PostgreSQL manual, "SSLRequest"). */
const SSL_REQUEST_BYTES = 8

/** Agrees to TLS as PostgreSQL does, and offers only versions that are too old. @returns its host and port */
export async function startOldTlsServer({ key, cert }: TlsCertificate): Promise<{ host: string; stop(): void }> {
  const secureContext = createSecureContext({
    key,
    cert,
    minVersion: 'TLSv1',
    maxVersion: 'TLSv1.1',
    // OpenSSL's default level refuses these versions on the server, too.
    ciphers: 'DEFAULT@SECLEVEL=0',
  })
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
    socket.once('readable', () => {
      socket.read(SSL_REQUEST_BYTES)
      socket.write('S')
      new TLSSocket(socket, { isServer: true, secureContext }).on('error', () => socket.destroy())
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  return {
    host: `127.0.0.1:${port}`,
    stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
