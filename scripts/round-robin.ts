import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A node that does not accept a connection in this time is skipped. */
const CONNECT_WITHIN_MS = 1_000

export interface RoundRobin {
  port: number
  close(): Promise<void>
}

/**
 * Passes each connection on loopback to the next target that accepts it, like a load balancer without health checks.
 * @param targets ports on loopback; read for each connection
 */
export async function startRoundRobin(port: number, targets: () => readonly number[]): Promise<RoundRobin> {
  const sockets = new Set<Socket>()
  let turn = 0

  function track(socket: Socket): Socket {
    sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.on('close', () => sockets.delete(socket))
    return socket
  }

  async function findTarget(): Promise<Socket | null> {
    const ports = targets()
    turn += 1
    for (let tried = 0; tried < ports.length; tried += 1) {
      const target = connect({ port: ports[(turn + tried) % ports.length]!, host: '127.0.0.1', noDelay: true })
      const accepted = once(target, 'connect', { signal: AbortSignal.timeout(CONNECT_WITHIN_MS) }).then(
        () => true,
        () => false,
      )
      if (await accepted) return track(target)
      target.destroy()
    }
    return null
  }

  const server = createServer({ pauseOnConnect: true, noDelay: true }, async caller => {
    track(caller)
    const target = await findTarget()
    if (target === null || caller.destroyed) {
      caller.destroy()
      target?.destroy()
      return
    }
    caller.pipe(target).pipe(caller)
    caller.on('close', () => target.destroy())
    target.on('close', () => caller.destroy())
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')

  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
