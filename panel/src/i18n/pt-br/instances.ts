import type { Words } from '../en.ts'

export const instances: Words['instances'] = {
  title: 'Instâncias',
  lead: 'Cada uma é um número de WhatsApp com seu token e seu webhook.',
  create: 'Nova instância',
  search: 'Buscar por nome, ID ou número',
  name: 'Nome',
  anyState: 'Qualquer estado',
  order: 'Ordem',
  orders: { newest: 'Mais novas primeiro', name: 'Por nome', traffic: 'Mais ativas primeiro' },
  whatsapp: 'WhatsApp',
  number: 'Número',
  noNumber: 'ainda sem número',
  traffic: 'Última hora',
  trafficHint: (sent, received, queued) =>
    `${sent} ${sent === 1 ? 'enviada' : 'enviadas'}, ${received} ${received === 1 ? 'recebida' : 'recebidas'}${queued === 0 ? '' : `, ${queued} na fila`} na última hora`,
  failed: (count, percent) => (count === 1 ? `1 falhou (${percent}%)` : `${count} falharam (${percent}%)`),
  webhook: 'Webhook',
  sandbox: 'sandbox',
  emptyTitle: 'Nenhuma instância ainda',
  emptyText:
    'Uma instância envia e recebe por um número de WhatsApp. Comece com um sandbox: ele se comporta como o de verdade e dispensa telefone.',
  trySandbox: 'Experimentar o sandbox',
  trySandboxHint: 'Um WhatsApp simulado. Conecta em segundos; nenhuma mensagem chega ao WhatsApp.',
  linkNumber: 'Vincular um número real',
  linkNumberHint: 'Com o WhatsApp do seu celular, por QR code ou código de pareamento.',
  noneFound: 'Nenhuma instância corresponde',
  noneFoundText: search => `Nenhuma instância tem “${search}” no nome, no ID ou no número.`,
  clearSearch: 'Mostrar todas as instâncias',
  createTitle: 'Nova instância',
  kind: 'Tipo',
  nameHint: 'Aparece neste painel e para programas que usam o token da instância. Nunca é enviado ao WhatsApp.',
  namePlaceholder: 'Loja',
  sandboxName: 'Sandbox',
  importSession: 'Trazer um número de outro programa',
  importSessionHint:
    'Escolha a pasta em que um programa com Baileys, como o WAHA, guarda a sessão. Não precisa do telefone. Antes, pare esse programa de vez.',
  sessionFolder: 'Pasta da sessão',
  createAction: 'Criar',
  creating: 'Criando…',
}

export const attention: Words['attention'] = {
  title: count => (count === 1 ? '1 item precisa de atenção' : `${count} itens precisam de atenção`),
  more: count => `Mostrar mais ${count}`,
  fewer: 'Mostrar menos',
  rest: count => `E mais ${count}. Filtre a lista abaixo por estado para encontrá-las.`,
  restricted: 'Restrita',
  openInstance: 'Abrir a instância',
  fixReceiver: 'Corrija o receptor; cada tentativa mostra a resposta dele.',
  disk: 'O disco está quase cheio',
  diskFree: (free, total) => `${free} de ${total} GiB livres`,
  diskRemedy:
    'Com o disco cheio, o Pombal não aceita mensagens. Libere espaço, aumente o disco ou guarde as mensagens por menos tempo com RETENTION_DAYS.',
}

export const instance: Words['instance'] = {
  overview: 'Visão geral',
  inbox: 'Conversas',
  messages: 'Mensagens',
  events: 'Eventos',
  files: 'Arquivos',
  webhook: 'Webhook',
  phone: 'Telefone',
  settings: 'Configurações',
  gone: 'Esta instância não está disponível',
  goneText: 'Ela foi excluída, você não tem mais acesso a ela, ou o endereço está errado.',
  sandboxBadge: 'Sandbox: o WhatsApp é simulado',
  sections: 'Seções da instância',
}

export const token: Words['token'] = {
  title: 'Enviar pelo seu programa',
  once: 'O token aparece só desta vez. Copie-o para onde seu programa guarda segredos. Se ele se perder, crie outro em Configurações.',
  id: 'ID da instância',
  token: 'Token da API',
  curl: 'Enviar uma mensagem pelo terminal',
  done: 'Já copiei',
}

export const instanceSettings: Words['instanceSettings'] = {
  rename: 'Nome',
  renamed: 'Renomeada.',
  facts: 'Dados',
  id: 'ID da instância',
  kind: 'Tipo',
  kinds: { whatsapp: 'Número de WhatsApp', sandbox: 'Sandbox' },
  created: 'Criada',
  token: 'Token da API',
  tokenHint: 'Só um resumo dele é guardado, por isso não pode ser mostrado de novo.',
  newToken: 'Novo token',
  newTokenTitle: 'Criar um novo token?',
  newTokenText:
    'O token atual deixa de valer imediatamente, em toda parte. Programas que o usam recebem 401 até terem o novo.',
  newTokenAction: 'Criar um novo token',
  logout: 'Desvincular o número',
  logoutHint: 'Encerra o vínculo com o WhatsApp. A instância, seu token e seu log ficam.',
  logoutTitle: 'Desvincular o número?',
  logoutText:
    'A instância some dos aparelhos conectados do telefone. Mensagens que ainda esperam falham com instance_logged_out, ou com unconfirmed se talvez já tenham saído. Para enviar de novo, vincule o número outra vez.',
  logoutAction: 'Desvincular',
  loggedOut: 'Desvinculando…',
  remove: 'Excluir a instância',
  removeHint: 'Não dá para desfazer.',
  removeTitle: 'Excluir esta instância?',
  removeText: [
    'O token deixa de valer imediatamente.',
    'Se a instância estiver conectada, o número é desconectado do WhatsApp. As credenciais são apagadas em todo caso.',
    'Mensagens que ainda esperam falham com instance_deleted, ou com unconfirmed se talvez já tenham saído.',
    'Eventos pendentes ainda são entregues; depois tudo é apagado.',
  ],
  removeAction: 'Excluir para sempre',
  removed: name => `${name} foi excluída.`,
}

export const person: Words['person'] = {
  title: 'Dados de uma pessoa',
  hint: 'Exporte ou apague o que está guardado de quem pedir. As duas ações ficam no registro de auditoria.',
  contact: 'Número ou LID',
  contactHint: 'Código do país, DDD e número. Outros números e o LID da mesma pessoa também são encontrados.',
  notAPerson: 'Digite um número, como 5511987654321, ou um LID, como 123456789@lid.',
  export: 'Exportar',
  erase: 'Apagar…',
  eraseTitle: 'Apagar o que está guardado desta pessoa?',
  eraseText: [
    'As mensagens nos dois sentidos, os eventos delas, os arquivos recebidos e o nome são apagados. Não dá para desfazer.',
    'Mensagens que ainda esperam o envio, que foram enviadas há menos de 25 horas ou cujos eventos ainda estão sendo entregues ficam. Apague de novo um dia depois.',
    'Para ficar com uma cópia, exporte antes.',
  ],
  eraseAction: 'Apagar para sempre',
  erased: (contact, messages) =>
    `${contact}: ${messages === 1 ? '1 mensagem foi apagada.' : `${messages} mensagens foram apagadas.`}`,
  erasedPartly: (contact, messages, kept) =>
    `${contact}: Apagadas: ${messages}. Mantidas por enquanto: ${kept}. Apague de novo um dia depois.`,
}

export const pace: Words['pace'] = {
  title: 'Ritmo',
  hint: 'Limita a velocidade de envio desta instância. Um campo vazio significa sem limite.',
  perMinute: 'Mensagens por minuto',
  perDay: 'Destinatários novos por dia',
  noLimit: 'Sem limite',
  from: 'Silêncio a partir das',
  until: 'Silêncio até as',
  timeZone: 'Fuso horário',
  typing: 'Mostrar “digitando…” antes de cada texto',
  saved: 'O ritmo foi salvo.',
}

export const calls: Words['calls'] = {
  title: 'Ligações',
  hint: 'O que acontece se alguém ligar para o número. Uma ligação recusada para de tocar também no telefone.',
  reject: 'Recusar ligações',
  text: 'Texto para quem liga',
  textHint: 'Enviado no máximo uma vez por hora a cada pessoa. Vazio: nenhum.',
  placeholder: 'Não atendemos ligações aqui. Escreva para nós.',
  saved: 'Salvo. Vale a partir da próxima ligação.',
}

export const proxy: Words['proxy'] = {
  title: 'Proxy da instância',
  hint: 'Tudo entre esta instância e o WhatsApp passa pelo proxy: a conexão e os arquivos, nos dois sentidos. O serviço o testa antes de usá-lo.',
  current: 'Em uso:',
  url: 'Endereço do proxy',
  urlHint: 'Uma URL http, https ou socks5, com o usuário e a senha se o proxy os pedir. A senha não aparece de novo.',
  save: 'Testar e usar',
  saved: 'O proxy funciona. A instância conecta por ele.',
  remove: 'Não usar proxy',
  removed: 'A instância conecta sem proxy.',
}

export const keys: Words['keys'] = {
  title: 'Chaves da API',
  hint: 'Dê a cada programa uma chave própria, limitada ao que ele precisa. Todas dividem o limite de chamadas da instância.',
  create: 'Nova chave',
  createAction: 'Criar a chave',
  createdTitle: 'Copie a chave',
  once: 'A chave só é mostrada uma vez. Copie-a agora e guarde-a com os segredos do seu programa.',
  key: 'Chave da API',
  name: 'Nome da chave',
  nameHint: 'O programa que vai usá-la.',
  namePlaceholder: 'Meu CRM',
  mayDo: 'A chave pode',
  scopes: {
    send: 'enviar, editar e apagar mensagens, e verificar números',
    read: 'ler mensagens',
    events: 'ler e reenviar eventos',
    webhooks: 'ler e mudar webhooks e seus segredos',
    media: 'enviar, baixar e apagar arquivos',
  },
  lifetime: 'Expira',
  lifetimes: days => (days === 0 ? 'Nunca' : `Em ${days} dias`),
  lastUsed: 'Último uso',
  neverUsed: 'Nunca usada',
  expires: 'expira',
  expiredAt: 'expirou',
  expired: 'Expirada',
  revoke: 'Revogar',
  revokeLabel: name => `Revogar a chave ${name}`,
  revokeTitle: name => `Revogar a chave ${name}?`,
  revokeText:
    'Ela deixa de valer imediatamente. Programas que a usam recebem 401. As outras chaves e o token continuam valendo.',
  revoked: 'A chave foi revogada.',
}
