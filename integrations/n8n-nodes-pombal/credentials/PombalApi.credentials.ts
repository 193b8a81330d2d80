import type {
  ICredentialDataDecryptedObject,
  ICredentialTestRequest,
  ICredentialType,
  IHttpRequestOptions,
  INodeProperties,
} from 'n8n-workflow'

export class PombalApi implements ICredentialType {
  name = 'pombalApi'
  displayName = 'Pombal API'
  documentationUrl = 'https://www.npmjs.com/package/n8n-nodes-pombal'
  icon = { light: 'file:pombal.svg', dark: 'file:pombal.dark.svg' } as const
  properties: INodeProperties[] = [
    {
      displayName: 'Base URL',
      name: 'baseUrl',
      type: 'string',
      default: 'http://localhost:3000',
      placeholder: 'https://pombal.example.com',
      description: 'The address of the service, without /v1',
      required: true,
    },
    {
      displayName: 'Token',
      name: 'token',
      type: 'string',
      typeOptions: { password: true },
      default: '',
      description:
        'The API token of the instance, or an API key. The node Pombal needs the scopes "send", "read" and, for files, "media"; Pombal Trigger needs "events"; Pombal Webhook Trigger needs "webhooks".',
      required: true,
    },
  ]

  // A function, because n8n does not evaluate expressions for a trigger that reads in the background.
  authenticate = async (credentials: ICredentialDataDecryptedObject, request: IHttpRequestOptions) => ({
    ...request,
    headers: { ...request.headers, Authorization: `Bearer ${credentials.token}` },
  })

  test: ICredentialTestRequest = {
    request: { baseURL: '={{$credentials.baseUrl.replace(/\\/+$/, "")}}', url: '/v1/instance' },
  }
}
