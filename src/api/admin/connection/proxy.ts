import { Type } from 'typebox'
import { findProxyUrlFault, MAX_PROXY_URL_LENGTH, withoutPassword } from '../../../domain/connection/proxy-url.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { checkAgain } from '../../check-again.ts'
import type { Api, ApiContext } from '../../context.ts'
import { type ProxyView, proxyViewSchema } from '../../resources/connection.ts'
import { dataOf, nullable } from '../../resources/schema-kit.ts'
import { noteForAudit } from '../audit/record-changes.ts'
import { getInstanceOrRefuse, instanceParams, orNotFound } from '../instances/instance-params.ts'

const bodySchema = Type.Object(
  {
    url: nullable(
      Type.String({
        minLength: 1,
        maxLength: MAX_PROXY_URL_LENGTH,
        description:
          'An `http`, `https` or `socks5` URL with the user name and password, if the proxy needs them. In these, write `%`, `:`, ' +
          '`/` and `@` percent-encoded. Null: none.',
        examples: ['socks5://user:password@proxy.example:1080'],
      }),
    ),
  },
  { title: 'ProxyRequest' },
)

export function getProxy(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/proxy',
    {
      schema: {
        operationId: 'getProxy',
        summary: 'Read the proxy of an instance',
        tags: ['Connection'],
        params: instanceParams,
        response: { 200: dataOf(proxyViewSchema, 'The proxy.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      return { data: viewOf(orNotFound(await store.connections.find(id)).proxy) }
    },
  )
}

export function setProxy(api: Api, context: ApiContext): void {
  const { store } = context
  api.put(
    '/instances/:id/proxy',
    {
      schema: {
        operationId: 'setProxy',
        summary: 'Set the proxy of an instance',
        description:
          'Everything between the instance and WhatsApp goes through the proxy: the socket and files in both directions. The proxy ' +
          'is tested before it is stored, which takes up to 20 s; the connection then goes through it at once. The password is ' +
          'stored encrypted and never returned.',
        tags: ['Connection'],
        params: instanceParams,
        body: bodySchema,
        response: { 200: dataOf(proxyViewSchema, 'The new proxy.') },
      },
      config: {
        refusals: [
          'instance_not_found',
          'invalid_request',
          'proxy_unreachable',
          'proxy_login_refused',
          'proxy_without_whatsapp',
          'sandbox_without_proxy',
        ],
      },
    },
    async request => {
      const { url } = request.body
      const { id, kind } = await getInstanceOrRefuse(store, request.params.id)
      if (url !== null) {
        if (kind === 'sandbox') throw new Refusal('sandbox_without_proxy')
        const fault = findProxyUrlFault(url)
        if (fault !== null) throw new Refusal('invalid_request', fault)
        await context.proxies.check(url, id)
        await checkAgain(context, request)
      }
      noteForAudit(request, { proxy: url === null ? '' : withoutPassword(url) })
      orNotFound((await store.connections.setProxy(id, url)) || null)
      return { data: viewOf(url) }
    },
  )
}

function viewOf(url: string | null): ProxyView {
  return { url: url === null ? null : withoutPassword(url) }
}
