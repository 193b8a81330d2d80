import { finished } from 'node:stream'
import { Refusal } from '../../../domain/refusal.ts'
import { checkAgain } from '../../check-again.ts'
import type { Api, ApiContext } from '../../context.ts'
import { attachmentHeader } from '../../media/download-headers.ts'
import { BYTES } from '../../media/serve-file.ts'
import { lastDigits, noteForAudit } from '../audit/record-changes.ts'
import { getInstanceOrRefuse } from '../instances/instance-params.ts'
import { createContactArchive } from './contact-archive.ts'
import { checkContact, contactParams } from './erase-contact.ts'

/** Exports at the same time on a node. Each reads every received message of its instance twice. */
const AT_ONCE = 2
const RETRY_AFTER_SECONDS = 10

export function exportContact(api: Api, context: ApiContext): void {
  const { store, media, closing } = context
  let open = 0
  api.get(
    '/instances/:id/contacts/:contact/export',
    {
      exposeHeadRoute: false,
      schema: {
        operationId: 'exportContact',
        summary: 'Export a contact',
        description:
          'Everything that `eraseContact` would erase, as a zip file: messages in both directions, their events, files, the ' +
          'name, and cached look-ups, under every number and LID of the person; also the files that were sent to the person, ' +
          'the groups that the person is in, and, in groups, the replies of the instance to the person and its read marks ' +
          'on the messages of the person. ' +
          '`README.txt` in it says what each file contains. A connection that ends early leaves a zip file that cannot be opened.',
        tags: ['Message log'],
        params: contactParams,
        response: { 200: { description: 'The zip file.', content: { 'application/zip': { schema: BYTES } } } },
      },
      config: { refusals: ['instance_not_found', 'invalid_request', 'too_many_transfers'] },
    },
    async (request, reply) => {
      const { id, contact } = request.params
      checkContact(contact)
      noteForAudit(request, { contact: lastDigits(contact) })
      const instance = await getInstanceOrRefuse(store, id)
      if (open >= AT_ONCE)
        throw new Refusal('too_many_transfers', 'Two contacts are being exported: wait for the Retry-After time.', {
          retryAfterSeconds: RETRY_AFTER_SECONDS,
        })
      open += 1
      try {
        const data = await store.retention.openContact(instance.id, contact, store.clock.now())
        const archive = createContactArchive({
          instance,
          contact,
          data,
          store,
          media,
          checkAgain: () => checkAgain(context, request),
          closing,
        })
        archive.once('close', () => {
          open -= 1
        })
        // If an error is answered instead, for example because the audit record cannot be written, nobody reads the archive.
        finished(reply.raw, () => archive.destroy())
        const name = `contact-${contact.replace('@', '-')}.zip`
        return reply.type('application/zip').header('content-disposition', attachmentHeader(name)).send(archive)
      } catch (error) {
        open -= 1
        throw error
      }
    },
  )
}
