import { Type } from 'typebox'
import type { InstanceId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { checkAgain } from '../../check-again.ts'
import type { Api, ApiContext } from '../../context.ts'
import { closedSignal } from '../../http/closed-signal.ts'
import { isId } from '../../input.ts'
import { FILE_REFUSALS, fileHeadersSchema, fileResponses, serveFile } from '../../media/serve-file.ts'
import { mediaIdSchema } from '../../resources/media.ts'
import { openWhenThere } from './wait-for-media.ts'

const MAX_WAIT_SECONDS = 25

const querySchema = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_WAIT_SECONDS,
      default: 0,
      description: 'If a received file is still being fetched from WhatsApp, wait for it up to this many seconds.',
    }),
  ),
})

export function getMedia(api: Api, context: ApiContext): void {
  const { media, store } = context
  const waiting = new Map<InstanceId, number>()
  api.get(
    '/media/:id',
    {
      schema: {
        operationId: 'getMedia',
        summary: 'Download a file',
        description:
          'Returns the bytes. `Range` and `ETag` work, so an interrupted download can be continued. A file that ' +
          'somebody sent to the instance is fetched from WhatsApp first. Until it is stored, the answer is 409 ' +
          '`media_pending`.',
        tags: ['Media'],
        params: Type.Object({ id: mediaIdSchema }),
        querystring: querySchema,
        headers: fileHeadersSchema,
        response: fileResponses,
      },
      config: { scope: 'media', refusals: ['invalid_request', ...FILE_REFUSALS] },
    },
    async (request, reply) => {
      if (media === null) throw new Refusal('media_not_configured')
      const { id } = request.params
      if (!isId(id)) throw new Refusal('media_not_found')
      const { wait: seconds = 0 } = request.query
      const wait = {
        hints: store.hints,
        waiting,
        waitMs: seconds * 1_000,
        gone: closedSignal(reply.raw),
        checkAgain: () => checkAgain(context, request),
      }
      return serveFile(request, reply, await openWhenThere(media, request.instanceId, id, wait))
    },
  )
}
