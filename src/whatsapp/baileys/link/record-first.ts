import type { BinaryNode, WASocket } from 'baileys'
import { asResend } from '../signal/retry-requests.ts'

/**
 * Records stanzas before Baileys handles and acknowledges them.
 * @param event Baileys' name for the kind of stanza
 * @param record null if there is nothing to record; a stanza for which it resolves to false does not reach Baileys
 * @param closed no stanza reaches Baileys once this is aborted
 * @param onFailed the stanza was not recorded and is not acknowledged
 */
export function recordFirst(
  { ws }: WASocket,
  event: string,
  record: (stanza: BinaryNode) => Promise<boolean> | null,
  closed: AbortSignal,
  onFailed: (error: unknown) => void,
): void {
  const baileys = ws.listeners(event)
  ws.removeAllListeners(event)
  ws.on(event, (stanza: BinaryNode) => {
    const passOn = () => {
      if (closed.aborted) return
      asResend(() => {
        for (const listener of baileys) listener.call(ws, stanza)
      })
    }
    const recorded = record(stanza)
    if (recorded === null) passOn()
    else recorded.then(known => known && passOn(), onFailed)
  })
}
