// What the page says, in both languages.
"use strict";

const TEXTS = {
  en: {
    other: "中文", title: "Words in context", search: "Search a word or text", matches: "Lines on this page with this text",
    layer: "Layer", map: "Map", colour: "Colour", pca: "PCA", tsne: "t-SNE", source: "Source", usage: "Usage",
    usages: (count) => (count === 1 ? "1 usage" : `${count} usages`), usageNote: "Usages, each with words used in a similar way:",
    others: "others", unlabelled: "no label", computing: "the map is being computed …",
    tokenLayer: "0 (tokens)", line: "Line", substitutes: "Words of similar meaning here", neighbours: "Most similar uses",
    hint: "Move the mouse over a point to see its line; click the point to keep the line.",
    same: "All vectors of this word are the same in this layer, so there is one point.",
    shown: (shown, all) => `${shown} of ${all} occurrences`, more: (count) => `and ${count} more`,
    madeWith: (index, model) => `index ${index}, model ${model}`, none: "No line on this page has this text.",
    nats: (forward, backward) => `Surprisal: forward ${forward} nats, backward ${backward} nats`,
    unknown: "outside the vocabulary", scale: "Surprisal in nats, mean of both directions:",
    noSoftmax: "The model has no softmax, so there is no surprisal and there are no substitutes.",
    moveOver: "Move the mouse over a token to see its surprisal.", ask: "Show", type: "Type any sentence",
    failed: "No answer from the server. Is it still running?", own: "your sentence; click a token to see its substitutes and neighbours",
  },
  zh: {
    other: "English", title: "语境中的词", search: "查找词语或文本", matches: "页面上含有这段文本的行",
    layer: "层", map: "分布图", colour: "颜色", pca: "PCA", tsne: "t-SNE", source: "来源", usage: "用法",
    usages: (count) => `${count} 种用法`, usageNote: "各种用法，及用法相近的词：",
    others: "其他", unlabelled: "无标签", computing: "正在计算分布图……",
    tokenLayer: "0（词层）", line: "所在行", substitutes: "此处意义相近的词", neighbours: "用法最相近的词例",
    hint: "把鼠标移到点上，可以读到它所在的行；点击后该行会固定下来。",
    same: "这个词在这一层的向量全都相同，所以只有一个点。",
    shown: (shown, all) => `显示 ${all} 次出现中的 ${shown} 次`, more: (count) => `另有 ${count} 处`,
    madeWith: (index, model) => `索引 ${index}，模型 ${model}`, none: "页面上没有含有这段文本的行。",
    nats: (forward, backward) => `意外度：前向 ${forward} nats，后向 ${backward} nats`,
    unknown: "不在词表中", scale: "意外度（nats，两个方向的平均值）：",
    noSoftmax: "这个模型没有 softmax，所以没有意外度和可能的替换词。",
    moveOver: "把鼠标移到词上，可以看到它的意外度。", ask: "显示", type: "输入任意句子",
    failed: "没有得到服务器的答复。它还在运行吗？", own: "你输入的句子；点击其中的词，可以看到替换词和近邻",
  },
};
