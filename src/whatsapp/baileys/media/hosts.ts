import { isLoopback } from '../addresses.ts'

const PATH = /^\/[!-~]{1,4095}$/
/** The real media hosts. */
const WHATSAPP_HOST = /^[a-z0-9.-]+\.whatsapp\.net$/

/** Whether files may be exchanged with a host that WhatsApp named. In a simulated network, only hosts on loopback are allowed. */
export function isMediaHost(hostname: string, simulated: boolean): boolean {
  if (!simulated) return WHATSAPP_HOST.test(hostname)
  const url = URL.parse(`https://${hostname}`)
  return url !== null && url.host === hostname && isLoopback(url)
}

/** Whether a request line may contain this path. The sender of a message chooses it. */
export function isMediaPath(path: string): boolean {
  return PATH.test(path)
}
