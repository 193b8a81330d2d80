import { createServer } from 'node:net'

/** Below this, many systems require a right. */
const FIRST_FREE_PORT = 1_024

interface Address {
  host: string
  port: number
  /** The setting of the port. */
  setting: 'PORT' | 'METRICS_PORT'
}

/** @returns a sentence for the operator, or null if the error does not come from listening */
export function explainListening(error: unknown, { host, port, setting }: Address): string | null {
  const { code, syscall, hostname } = error as NodeJS.ErrnoException & { hostname?: string }
  if (syscall === 'listen' && code === 'EADDRINUSE')
    return `Port ${port} of ${host} is in use: set ${setting} to a free port.`
  if (syscall === 'listen' && code === 'EACCES')
    return `This user may not listen on port ${port}: set ${setting} to ${FIRST_FREE_PORT} or higher.`
  if ((syscall === 'listen' && code === 'EADDRNOTAVAIL') || (syscall === 'getaddrinfo' && hostname === host))
    return `${host} is not an address of this machine: set HOST to one that is, or to 0.0.0.0 for all of them.`
  return null
}

/**
 * Whether this user may listen there. A port from 1024 on is not taken for this, because a service may be starting.
 * @returns a sentence for the operator, or null if nothing is wrong, or if the port is only in use
 */
export async function findListeningProblem(address: Address): Promise<string | null> {
  const { host, port } = address
  const server = createServer()
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen({ host, port: port < FIRST_FREE_PORT ? port : 0 }, resolve)
    })
    return null
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EADDRINUSE' ? null : explainListening(error, address)
  } finally {
    server.close()
  }
}
