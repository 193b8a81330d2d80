import { type BinaryNode, isJidGroup, type WASocket } from 'baileys'
import type { Logger } from 'pino'
import type { GroupDetails } from '../../../domain/recipients/group.ts'
import type { PreparedMessage } from '../../../store/messages/messages.ts'
import { untilStored } from '../../../store/until-stored.ts'
import { isSelf, type Self } from '../addresses.ts'
import { Correspondents } from '../correspondents.ts'
import type { LibraryCalls } from '../library-scope.ts'
import { parseReceipt, type Receipt, type SentReceipt } from '../parsing/receipt.ts'
import { type DeviceCache, ensureDevices } from '../recipient-devices.ts'
import type { CredentialStore } from '../signal/credential-store.ts'
import { asResend } from '../signal/send-context.ts'
import type { LidFinder } from './lid-finder.ts'
import { findMetadata } from './link-options.ts'
import { ReceiptGuard } from './receipt-guard.ts'

interface ReceiptOptions {
  credentials: CredentialStore
  devices: DeviceCache
  calls: LibraryCalls
  lids: Pick<LidFinder, 'find'>
  logger: Logger
  self(): Self
  findSent(whatsappId: string): Promise<PreparedMessage | null>
  findGroup(group: string): Promise<GroupDetails | null>
  refreshGroup(group: string): Promise<void>
  record(receipt: SentReceipt): Promise<void>
  /** A receipt could not be recorded and was not acknowledged. */
  onFailed(error: unknown): void
}

/** Records each receipt before Baileys acknowledges it, and checks each request to send a message again. */
export function recordReceipts(socket: WASocket, options: ReceiptOptions): void {
  const { calls, devices, self, findSent } = options
  const correspondents = new Correspondents(options.credentials)
  const guard = new ReceiptGuard({
    correspondents,
    self,
    findSent: id => untilStored(() => findSent(id), calls.closed),
    findLid: (address, expected) => options.lids.find(address, expected),
    findGroup: group => findMetadata(options, group),
    refreshGroup: options.refreshGroup,
  })

  async function record(receipt: Receipt): Promise<void> {
    const { chat, alternate } = receipt
    const addresses = [chat, ...(alternate === undefined ? [] : [alternate])]
    const from = (await Promise.all(addresses.map(one => correspondents.addressesOf(one)))).flat()
    const findAddress = async (id: string) => (await guard.isAbout(id, chat, alternate))?.address ?? null
    await options.record({ ...receipt, from, findAddress })
  }

  /** A refused request is acknowledged, because WhatsApp would deliver it again otherwise. */
  async function checkRetry(node: BinaryNode): Promise<boolean> {
    if (await guard.mayResend(node)) {
      const { from = '', recipient } = node.attrs
      const to = isSelf(from, self()) ? (recipient ?? from) : from
      // If this fails, Baileys asks for the devices itself.
      if (!isJidGroup(to)) await ensureDevices({ socket, devices, self: self() }, to).catch(() => undefined)
      return true
    }
    options.logger.warn({ whatsappId: node.attrs['id'] }, 'receipt.foreign_retry_refused')
    calls.inBackground('ack', () => socket.sendMessageAck(node))
    return false
  }

  const { ws } = socket
  const baileys = ws.listeners('CB:receipt')
  ws.removeAllListeners('CB:receipt')
  ws.on('CB:receipt', (node: BinaryNode) => {
    const passOn = () => {
      if (calls.closed.aborted) return
      asResend(() => {
        for (const listener of baileys) listener.call(ws, node)
      })
    }
    if (node.attrs['type'] === 'retry') {
      checkRetry(node).then(mayResend => mayResend && passOn(), options.onFailed)
      return
    }
    const receipt = parseReceipt(node, self())
    if (receipt) record(receipt).then(passOn, options.onFailed)
    else passOn()
  })
}
